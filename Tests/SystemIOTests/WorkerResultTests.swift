import SystemIO
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

  /// As many items are processed at once as there are threads, and no more.
  @Test func threadsWorkAtTheSameTime() {
    let (running, most) = (Counter(), Counter())
    let end = Host.monotonicSeconds() + 600
    let results = Workers.results(of: Array(0..<40), threads: 4, name: "test") { number in
      most.raise(to: running.add())
      while most.value < 4, Host.monotonicSeconds() < end { Host.pause(seconds: 0.001) }
      Host.pause(seconds: 0.002)
      running.add(-1)
      return number
    }
    #expect(results == Array(0..<40))
    #expect(most.value == 4)
  }
}
