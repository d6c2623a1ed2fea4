import sys; sys.path.insert(0,'/work/main/tests/programs')
from test_composing import *
from conftest import *
@pytest.mark.parametrize("n",[1,2,3])
def test_dbg(tmp_path, home, workspace, n):
    with cass(tmp_path) as tmux:
        say(tmux, "!!stty -a | tr ';' '\\n' | grep isig; ps -o pid,ppid,pgid,tpgid,args -t $(tty | sed s,/dev/,,); echo be''gun; sleep 5")
        tmux.until("begun")
        print(tmux.screen())
        assert 0
