print("usage: microbench walk DIR")
