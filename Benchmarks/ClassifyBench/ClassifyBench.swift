// Measures the policy engine alone.

@main
enum ClassifyBench {
  static func main() throws {
    guard let count = CommandLine.arguments.dropFirst().first.flatMap({ Int($0) }) else {
      return print("usage: classifybench COUNT")
    }
    try ClassifyBenchmark.run(count: count)
  }
}
