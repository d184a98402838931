import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Mount

/// Requests that the kernel interrupts, and the threads that handle requests.
struct PendingRequestsTests {
  /// Requests of threads whose end a test controls.
  private final class Fixture: Sendable {
    private let ending = Mutex<Set<Int32>>([])
    private let answered = Mutex<[UInt]>([])

    /// The requests answered with EINTR.
    var interrupted: [UInt] { answered.withLock { $0 } }

    func end(_ thread: Int32) { ending.withLock { _ = $0.insert(thread) } }

    func requests() -> PendingRequests {
      PendingRequests(interval: 0.001) { thread, _ in
        self.ending.withLock { $0.contains(thread) }
      } interrupt: { address in
        self.answered.withLock { $0.append(address) }
      }
    }

    /// Waits until `count` requests have been answered.
    func wait(for count: Int) {
      for _ in 0..<3000 where interrupted.count < count { Host.pause(seconds: 0.01) }
    }
  }

  @Test func aRequestOfAnEndingProgramIsAnswered() {
    let fixture = Fixture()
    let requests = fixture.requests()
    fixture.end(7)
    for number: UInt64 in [1, 2] {
      requests.add(number, at: UInt(number) + 100, of: Int32(number) + 6)
      requests.start(number)
    }
    requests.didInterrupt(101)
    #expect(fixture.interrupted == [101], "at once")
    #expect(!requests.claim(1), "it was answered")
    #expect(requests.claim(2) && requests.isEmpty)
    #expect(!requests.claim(2), "it is answered once")
  }

  /// The kernel reports only the first signal: a later one that ends the program must be noticed.
  @Test func anotherSignalIsNoticed() {
    let fixture = Fixture()
    let requests = fixture.requests()
    requests.add(1, at: 101, of: 7)
    requests.start(1)
    requests.didInterrupt(101)
    #expect(requests.contains(1) && fixture.interrupted.isEmpty)
    fixture.end(7)
    fixture.wait(for: 1)
    #expect(fixture.interrupted == [101] && !requests.contains(1))
  }

  /// A program that handles the signal gets the answer if the answer comes soon.
  @Test func aHandledSignalEndsARequestThatWaits() {
    let looks = Mutex<[Bool]>([])
    let answered = Mutex<[UInt]>([])
    let requests = PendingRequests(interval: 0.001) { _, hasWaited in
      looks.withLock { $0.append(hasWaited) }
      return hasWaited
    } interrupt: { address in
      answered.withLock { $0.append(address) }
    }
    requests.add(1, at: 101, of: 7)
    requests.start(1)
    requests.didInterrupt(101)
    for _ in 0..<3000 where !requests.isEmpty { Host.pause(seconds: 0.01) }
    #expect(looks.withLock { $0 } == [false, true] && answered.withLock { $0 } == [101])
  }

  /// When the library reuses the address of a request that was ended, a thread may still be
  /// handling that request.
  @Test func aLaterRequestAtTheSameAddressIsDistinct() {
    let fixture = Fixture()
    let requests = fixture.requests()
    fixture.end(7)
    let (first, second) = (requests.newNumber(), requests.newNumber())
    #expect(first != second)
    requests.add(first, at: 101, of: 7)
    requests.start(first)
    requests.didInterrupt(101)
    #expect(fixture.interrupted == [101])
    requests.add(second, at: 101, of: 8)
    requests.start(second)
    #expect(!requests.contains(first) && !requests.claim(first), "it was ended")
    #expect(requests.contains(second) && requests.claim(second))
  }

  /// While the signals of its program are being read, a request may be answered and its address
  /// reused.
  @Test func aLaterRequestIsNotEndedForAnEarlierOne() {
    let answered = Mutex<[UInt]>([])
    let own = Mutex<PendingRequests?>(nil)
    let requests = PendingRequests(interval: 0.001) { thread, _ in
      if thread == 7, let requests = own.withLock({ $0 }), requests.claim(1) {
        requests.add(2, at: 101, of: 8)
      }
      return thread != 8
    } interrupt: { address in
      answered.withLock { $0.append(address) }
    }
    own.withLock { $0 = requests }
    defer { own.withLock { $0 = nil } }
    requests.add(1, at: 101, of: 7)
    requests.add(3, at: 103, of: 9)
    for number: UInt64 in [1, 3] { requests.start(number) }
    requests.didInterrupt(101)
    requests.didInterrupt(103)
    #expect(answered.withLock { $0 } == [103] && !requests.contains(1))
    #expect(requests.claim(2) && requests.isEmpty)
  }

  /// The library still uses a request until it is started.
  @Test func aRequestIsNotAnsweredBeforeItsStart() {
    let fixture = Fixture()
    let requests = fixture.requests()
    fixture.end(7)
    requests.add(1, at: 101, of: 7)
    requests.didInterrupt(101)
    requests.add(2, at: 102, of: 7)
    requests.start(2)
    requests.didInterrupt(102)
    #expect(fixture.interrupted == [102] && requests.contains(1))
    requests.start(1)
    #expect(fixture.interrupted == [102, 101])
    requests.didInterrupt(103)
    #expect(fixture.interrupted.count == 2 && requests.isEmpty, "it is not known")
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

  /// The masks are: SIGKILL 100, SIGTERM 4000, SIGINT 2, SIGALRM 2000, SIGTSTP 80000, SIGWINCH
  /// 8000000.
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

  @Test func handledSignalsAreNotFatal() {
    #expect(!RequesterSignals(status: Self.status(shared: "4000", caught: "4000")).areFatal)
    #expect(RequesterSignals(status: Self.status(shared: "4000")).areFatal)
    #expect(RequesterSignals(status: Self.status(pending: "100")).areFatal)
  }

  @Test func statusOfAThreadIsRead() {
    #expect(!RequesterSignals.areEnding(Host.processID, hasWaited: true))
    for thread in [0, Int32.max] {
      #expect(RequesterSignals.areEnding(thread, hasWaited: true), "it is not visible, or gone")
      #expect(!RequesterSignals.areEnding(thread, hasWaited: false), "that is not known")
    }
  }

  // MARK: - Threads

  /// One thread always receives, while all others work.
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

  /// If all other threads are blocked, the last one continues to receive, and no job is lost.
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
