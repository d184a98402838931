// Measures the walk by itself: what it prints, run.py sets beside `find`. A program of its own, so
// that loading what the walk does not need is no part of the measure.

import SystemIO

@main
enum WalkBench {
  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 2 else { return print("usage: walkbench DIR") }
    try WalkBenchmark.run(ByteString(arguments[1]))
  }
}
