import runpy, sys
from pathlib import Path
def test_it(capsys):
    sys.path.insert(0, "/tmp/values")
    runpy.run_path(Path("/tmp/values/which").read_text().strip())
    open("/tmp/values/out.txt","w").write(capsys.readouterr().out)
