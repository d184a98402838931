import Synchronization
import SystemIO
import TestSupport
import Testing

/// The results of work that several threads share.
struct WorkerResultTests {
  @Test(arguments: [1, 2, 5], [1, 3, 100]) func theOrderIsThatOfTheItems(threads: Int, batch: Int) {
    for count in [0, 1, 2, 99] {
      let results = Workers.results(
        of: Array(0..<count), threads: threads, name: "test", batch: batch
      ) { $0 * 2 }
      #expect(results == (0..<count).map { $0 * 2 })
    }
  }

  /// As many items as there are threads are begun before the first one ends, and no more.
  @Test func threadsWorkAtTheSameTime() {
    let (begun, most) = (Atomic<Int>(0), Atomic<Int>(0))
    let results = Workers.results(of: Array(0..<12), threads: 4, name: "test") { number in
      let now = begun.add(1, ordering: .relaxed).newValue
      most.max(now, ordering: .relaxed)
      for _ in 0..<5000 where most.load(ordering: .relaxed) < 4 { Host.pause(seconds: 0.001) }
      begun.subtract(1, ordering: .relaxed)
      return number
    }
    #expect(results == Array(0..<12))
    #expect(most.load(ordering: .relaxed) == 4)
  }
}
