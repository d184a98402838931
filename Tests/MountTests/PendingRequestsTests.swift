import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Mount

/// Requests that the kernel interrupts, and the threads that handle requests.
struct PendingRequestsTests {
  /// Requests with threads that end when a test says so.
  private final class Fixture: Sendable {
    private let ending = Mutex<Set<Int32>>([])
    private let answered = Mutex<[UInt]>([])

    /// The requests that were answered with EINTR.
    var interrupted: [UInt] { answered.withLock { $0 } }

    func end(_ thread: Int32) { ending.withLock { _ = $0.insert(thread) } }

    func requests() -> PendingRequests {
      PendingRequests(interval: 0.001) { thread in
        self.ending.withLock { $0.contains(thread) }
      } interrupt: { address in
        self.answered.withLock { $0.append(address) }
      }
    }

    /// Waits until a number of requests was answered.
    func wait(for count: Int) {
      for _ in 0..<3000 where interrupted.count < count { Host.pause(seconds: 0.01) }
    }
  }

  @Test func aRequestOfAnEndingProgramIsAnswered() {
    let fixture = Fixture()
    let requests = fixture.requests()
    fixture.end(7)
    for address: UInt in [1, 2] {
      requests.add(address, of: Int32(address) + 6)
      requests.start(address)
    }
    requests.didInterrupt(1)
    fixture.wait(for: 1)
    #expect(fixture.interrupted == [1])
    #expect(!requests.claim(1), "it was answered")
    #expect(requests.claim(2) && requests.isEmpty)
    #expect(!requests.claim(2), "it is answered once")
  }

  /// The kernel reports the first signal only: a later one that ends the program is noticed.
  @Test func anotherSignalIsNoticed() {
    let fixture = Fixture()
    let requests = fixture.requests()
    requests.add(1, of: 7)
    requests.start(1)
    requests.didInterrupt(1)
    #expect(requests.contains(1) && fixture.interrupted.isEmpty)
    fixture.end(7)
    fixture.wait(for: 1)
    #expect(fixture.interrupted == [1] && requests.isEmpty)
  }

  /// The library uses a request until it is started.
  @Test func aRequestIsNotAnsweredBeforeItsStart() {
    let fixture = Fixture()
    let requests = fixture.requests()
    fixture.end(7)
    requests.add(1, of: 7)
    requests.didInterrupt(1)
    requests.add(2, of: 7)
    requests.start(2)
    requests.didInterrupt(2)
    fixture.wait(for: 1)
    #expect(fixture.interrupted == [2] && requests.contains(1))
    requests.start(1)
    fixture.wait(for: 2)
    #expect(fixture.interrupted == [2, 1])
    requests.didInterrupt(3)
    #expect(!requests.contains(3) && requests.isEmpty, "it is not known")
  }

  // MARK: - Signals

  private static func status(
    pending: String = "0", shared: String = "0", blocked: String = "0", ignored: String = "0",
    caught: String = "0", state: String = "D (disk sleep)"
  ) -> [UInt8] {
    Array(
      """
      Name:\tcat
      State:\t\(state)
      SigQ:\t1/31439
      SigPnd:\t\(pending)
      ShdPnd:\t\(shared)
      SigBlk:\t\(blocked)
      SigIgn:\t\(ignored)
      SigCgt:\t\(caught)

      """.utf8)
  }

  /// SIGKILL is 100, SIGTERM 4000, SIGINT 2, SIGALRM 2000, SIGTSTP 80000, SIGWINCH 8000000.
  @Test(arguments: [
    (status(), false), (status(pending: "0000000000000100"), true),
    (status(shared: "0000000000004000"), true),
    (status(shared: "2", caught: "2"), true), (status(shared: "2", ignored: "2"), false),
    (status(shared: "2", blocked: "2"), false), (status(shared: "100", blocked: "100"), true),
    (status(shared: "2000", caught: "2000"), false), (status(shared: "2000"), true),
    (status(shared: "80000"), false), (status(shared: "8000000"), false),
    (status(state: "Z (zombie)"), true), (status(state: "R (running)"), false),
  ])
  func onlySomeSignalsEndAProgram(status: [UInt8], isEnding: Bool) {
    #expect(RequesterSignals(status: status).areEnding == isEnding)
  }

  @Test func statusOfAThreadIsRead() {
    #expect(!RequesterSignals.areEnding(Host.processID))
    #expect(RequesterSignals.areEnding(0), "it is not visible here")
    #expect(RequesterSignals.areEnding(Int32.max), "it is gone")
  }

  // MARK: - Threads

  /// One thread receives while all others work.
  @Test func theLastThreadKeepsWorkForAnother() {
    let queue = RequestQueue()
    let done = Mutex<[Int]>([])
    queue.join()
    queue.run { done.withLock { $0.append(1) } }
    #expect(queue.waiting == 1 && !queue.runNext {}, "it is the only thread")
    queue.join()
    queue.run { done.withLock { $0.append(2) } }
    #expect(done.withLock { $0 } == [2])
    var isBefore = false
    #expect(queue.runNext { isBefore = done.withLock { $0 } == [2] })
    #expect(done.withLock { $0 } == [2, 1] && isBefore && queue.waiting == 0)
    #expect(!queue.runNext {})
  }

  /// While all others wait, the last thread keeps receiving, and no job is lost.
  @Test func jobsRunOnceAThreadIsFree() throws {
    let queue = RequestQueue()
    let gate = Mutex(false)
    let begun = Mutex(0)
    let done = Mutex(0)
    let workers = try Workers(count: 2, capacity: 2, name: "test")
    queue.join()
    for _ in 0..<2 {
      workers.submit {
        queue.join()
        queue.run {
          begun.withLock { $0 += 1 }
          while !gate.withLock({ $0 }) { Host.pause(seconds: 0.001) }
        }
        while queue.runNext(before: {}) {}
        queue.leave()
      }
    }
    while begun.withLock({ $0 }) < 2 { Host.pause(seconds: 0.001) }
    for _ in 0..<5 { queue.run { done.withLock { $0 += 1 } } }
    #expect(queue.waiting == 5, "this thread receives")
    gate.withLock { $0 = true }
    workers.finish()
    #expect(done.withLock { $0 } == 5 && queue.waiting == 0)
  }
}
