import Foundation
import SystemIO
import Testing

struct WorkersTests {
  @Test func everyJobIsDoneWhenFinishReturns() throws {
    for count in [1, 2, 8] {
      let (workers, done) = (try Workers(count: count, capacity: 3, name: "test"), Counter())
      for _ in 0..<2000 { #expect(workers.submit { done.add() }) }
      workers.finish()
      #expect(done.value == 2000)
      #expect(!workers.submit { done.add() })
      workers.finish()
      #expect(done.value == 2000)
    }
  }

  @Test func jobsStartInOrder() throws {
    let workers = try Workers(count: 1, capacity: 4, name: "test")
    let (next, wrong) = (Counter(), Counter())
    for number in 0..<1000 {
      workers.submit { if next.add() != number + 1 { wrong.add() } }
    }
    workers.finish()
    #expect(next.value == 1000 && wrong.value == 0)
  }

  @Test func asManyJobsRunAsThereAreThreads() throws {
    let workers = try Workers(count: 4, capacity: 100, name: "test")
    let (running, most) = (Counter(), Counter())
    let end = Host.monotonicSeconds() + 600
    for _ in 0..<40 {
      workers.submit {
        most.raise(to: running.add())
        // The first jobs wait until all threads are busy, and then leave time for a fifth job to
        // start.
        while most.value < 4, Host.monotonicSeconds() < end { usleep(1000) }
        usleep(5000)
        running.add(-1)
      }
    }
    workers.finish()
    #expect(most.value == 4)
  }

  @Test func blockingJobsRunConcurrently() throws {
    let workers = try Workers(count: 16, capacity: 16, name: "test")
    let (inside, met) = (Counter(), Counter())
    let end = Host.monotonicSeconds() + 600
    for _ in 0..<16 {
      workers.submit {
        inside.add()
        // Each job waits for all others, so they would never finish one after another.
        while inside.value < 16, Host.monotonicSeconds() < end { usleep(1000) }
        if inside.value == 16 { met.add() }
      }
    }
    workers.finish()
    #expect(met.value == 16)
  }

  @Test func submitWaitsWhileTheQueueIsFull() throws {
    let workers = try Workers(count: 1, capacity: 2, name: "test")
    let (gate, submitted) = (DispatchSemaphore(value: 0), Counter())
    Thread {
      for _ in 0..<6 {
        workers.submit { gate.wait() }
        submitted.add()
      }
    }.start()
    usleep(100_000)
    // One job runs, two are queued, and the fourth one waits.
    #expect(submitted.value <= 3)
    for _ in 0..<6 { gate.signal() }
    let end = Host.monotonicSeconds() + 600
    while submitted.value < 6, Host.monotonicSeconds() < end { usleep(1000) }
    workers.finish()
    #expect(submitted.value == 6)
  }

  @Test func anErrorStartingAThreadIsThrownAndTheOthersEnd() throws {
    for first in 1...3 {
      let plan = Faults.Plan(failing: [.startThread], at: first, number: EAGAIN)
      let error = Faults.inject(plan) {
        failure { _ = try Workers(count: 3, capacity: 1, name: "hashing") }
      }
      #expect(error == SystemError(.startThread, "hashing", number: EAGAIN))
      #expect(plan.count == first)
    }
  }

  @Test func thereIsAtLeastOneThread() throws {
    let (workers, done) = (try Workers(count: 0, capacity: 0, name: "test"), Counter())
    workers.submit { done.add() }
    workers.finish()
    #expect(done.value == 1)
  }

  @Test func submittedJobsFinishAfterTheWorkersAreReleased() throws {
    let done = Counter()
    do {
      let workers = try Workers(count: 2, capacity: 10, name: "test")
      for _ in 0..<10 {
        workers.submit {
          usleep(1000)
          done.add()
        }
      }
    }
    let end = Host.monotonicSeconds() + 600
    while done.value < 10, Host.monotonicSeconds() < end { usleep(1000) }
    #expect(done.value == 10)
  }

  @Test func manyWorkersAreCreatedAndReleased() throws {
    let done = Counter()
    for _ in 0..<300 {
      let workers = try Workers(count: 3, capacity: 1, name: "test")
      for _ in 0..<5 { workers.submit { done.add() } }
      workers.finish()
    }
    #expect(done.value == 1500)
  }
}
