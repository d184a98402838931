import SystemIO

/// Walks a tree in one thread and reads the size and the modification time of every entry, as `find
/// -printf '%s%T@'` does.
enum WalkBenchmark {
  struct Counter: WalkVisitor {
    var entries = 0
    var bytes: UInt64 = 0
    var times: Int64 = 0
    var failures = 0

    mutating func visit(
      _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: Void,
      descent: inout WalkDescent<Void>
    ) {
      for index in batch.entries.indices {
        let status = batch.entries[index].status
        entries += 1
        bytes &+= status.size
        times &+= status.modified.seconds &* 1_000_000_000 &+ Int64(status.modified.nanoseconds)
        if status.kind == .directory { descent.enter(index, with: ()) }
      }
    }

    mutating func failed(_ problem: WalkProblem, state: Void) {
      failures += 1
      print(problem.error)
    }
  }

  /// Walks once and prints the number of entries, their total size, a sum of their times, the
  /// number of failures and the seconds.
  static func run(_ path: ByteString) throws(SystemError) {
    var counter = Counter()
    let start = Host.monotonicSeconds()
    var walk = Walk(try Directory.open(path: path))
    walk.run(&counter, state: ())
    let seconds = Host.monotonicSeconds() - start
    print(
      "entries=\(counter.entries) bytes=\(counter.bytes) times=\(counter.times)",
      "failures=\(counter.failures) seconds=\(seconds)")
  }
}
