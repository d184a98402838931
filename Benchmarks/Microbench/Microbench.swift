// Measures single parts of the program, each without the rest around it: what it prints, run.py
// sets beside the system's own programs.

import SystemIO

@main
enum Microbench {
  static func main() throws {
    let arguments = CommandLine.arguments.dropFirst()
    switch (arguments.first, arguments.count) {
    case ("walk", 2): try WalkBenchmark.run(ByteString(arguments[arguments.startIndex + 1]))
    case ("classify", 2):
      try ClassifyBenchmark.run(count: Int(arguments[arguments.startIndex + 1]) ?? 1_000_000)
    default: print("usage: microbench walk DIR | classify COUNT")
    }
  }
}
