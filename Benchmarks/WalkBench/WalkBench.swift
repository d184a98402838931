// Measures the walk alone; run.py compares the output with `find`. A separate program, so that the
// loading of other libraries is not measured.

import SystemIO

@main
enum WalkBench {
  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 2 else { return print("usage: walkbench DIR") }
    try WalkBenchmark.run(ByteString(arguments[1]))
  }
}
