import Foundation
import Testing

@testable import SystemIO

struct BoundedQueueTests {
  /// Runs a closure on a new thread.
  private func thread(_ body: @escaping @Sendable () -> Void) { Thread(block: body).start() }

  /// Waits at most ten minutes for a condition, since a busy machine may delay a thread.
  private func wait(_ condition: () -> Bool) -> Bool {
    let end = Host.monotonicSeconds() + 600
    while !condition() {
      if Host.monotonicSeconds() > end { return false }
      usleep(500)
    }
    return true
  }

  @Test func elementsLeaveInTheOrderOfTheirArrival() {
    let queue = BoundedQueue<Int>(capacity: 200)
    for round in 0..<5 {
      for number in 0..<150 { #expect(queue.enqueue(round * 1000 + number)) }
      for number in 0..<150 { #expect(queue.dequeue() == round * 1000 + number) }
    }
  }

  @Test func enqueueWaitsWhileTheQueueIsFull() {
    let (queue, counter) = (BoundedQueue<Int>(capacity: 2), Counter())
    thread {
      for number in 0..<5 {
        queue.enqueue(number)
        counter.add()
      }
    }
    #expect(wait { counter.value == 2 })
    usleep(50_000)
    #expect(counter.value == 2, "the third waits")
    #expect(queue.dequeue() == 0)
    #expect(wait { counter.value == 3 })
    usleep(20_000)
    #expect(counter.value == 3)
    for number in 1..<5 { #expect(queue.dequeue() == number) }
    #expect(wait { counter.value == 5 })
  }

  @Test func anOfferDoesNotWait() {
    let queue = BoundedQueue<Int>(capacity: 2)
    #expect(queue.offer(1))
    #expect(queue.offer(2))
    #expect(!queue.offer(3))
    #expect(queue.dequeue() == 1)
    #expect(queue.offer(4))
    queue.close()
    #expect(!queue.offer(5))
    #expect(queue.dequeue() == 2)
    #expect(queue.dequeue() == 4)
    #expect(queue.dequeue() == nil)
  }

  @Test func dequeueHasATimeout() {
    let queue = BoundedQueue<Int>(capacity: 2)
    let start = Host.monotonicSeconds()
    #expect(queue.dequeue(waitingAtMost: 0) == nil)
    #expect(queue.dequeue(waitingAtMost: 50) == nil)
    #expect(Host.monotonicSeconds() - start >= 0.05)
    thread {
      usleep(20_000)
      queue.enqueue(7)
    }
    // A thread that is not woken would wait for the whole timeout, which is far longer than any
    // delay on a busy machine.
    #expect(queue.dequeue(waitingAtMost: 900_000) == 7)
    #expect(Host.monotonicSeconds() - start < 600)
    queue.close()
    #expect(queue.dequeue(waitingAtMost: 900_000) == nil)
    #expect(Host.monotonicSeconds() - start < 600)
  }

  @Test func capacityIsAtLeastOne() {
    let queue = BoundedQueue<Int>(capacity: 0)
    #expect(queue.enqueue(1))
    #expect(queue.dequeue() == 1)
  }

  @Test func dequeueWaitsWhileTheQueueIsEmpty() {
    let (queue, counter) = (BoundedQueue<Int>(capacity: 2), Counter())
    thread {
      while queue.dequeue() != nil { counter.add() }
      counter.add(100)
    }
    usleep(30_000)
    #expect(counter.value == 0)
    queue.enqueue(7)
    #expect(wait { counter.value == 1 })
    queue.close()
    #expect(wait { counter.value == 101 })
  }

  @Test func aClosedQueueIsDrainedAndAcceptsNoMore() {
    let (queue, counter) = (BoundedQueue<Int>(capacity: 2), Counter())
    queue.enqueue(1)
    queue.enqueue(2)
    thread { counter.add(queue.enqueue(3) ? 10 : 1) }
    usleep(20_000)
    #expect(counter.value == 0)
    queue.close()
    #expect(wait { counter.value == 1 }, "the waiting put returns")
    #expect(!queue.enqueue(4))
    #expect(queue.dequeue() == 1)
    #expect(queue.dequeue() == 2)
    #expect(queue.dequeue() == nil)
    #expect(queue.dequeue() == nil)
    queue.close()
  }

  @Test func dequeuedElementsAreReleased() {
    final class Heavy: Sendable {
      let live: Counter
      init(_ live: Counter) {
        self.live = live
        live.add()
      }
      deinit { live.add(-1) }
    }
    let (queue, live) = (BoundedQueue<Heavy>(capacity: 8), Counter())
    for _ in 0..<8 { queue.enqueue(Heavy(live)) }
    #expect(live.value == 8)
    for left in (0..<8).reversed() {
      _ = queue.dequeue()
      #expect(live.value == left)
    }
  }

  /// Runs long enough to reveal races: each element arrives exactly once, those of one thread in
  /// order, and the capacity is never exceeded.
  @Test func concurrentUseLosesAndDuplicatesNothing() {
    let (threads, each, capacity) = (4, 20_000, 3)
    let queue = BoundedQueue<(Int, Int)>(capacity: capacity)
    let (inside, most, ended) = (Counter(), Counter(), Counter())
    let seen = ConditionLock([[Int]](repeating: [], count: threads))
    for number in 0..<threads {
      thread {
        for element in 0..<each {
          queue.enqueue((number, element))
          most.raise(to: inside.add())
        }
        ended.add()
      }
      thread {
        while let (from, element) = queue.dequeue() {
          inside.add(-1)
          seen.withLock { seen, _ in seen.pointee[from].append(element) }
        }
        ended.add(1000)
      }
    }
    #expect(wait { ended.value % 1000 == threads })
    queue.close()
    #expect(wait { ended.value / 1000 == threads })
    let all = seen.withLock { seen, _ in seen.pointee }
    for elements in all { #expect(elements.sorted() == Array(0..<each)) }
    // The count is increased after an enqueue and decreased after a dequeue, so it may be too high
    // by one for each dequeuing thread.
    #expect(most.value <= capacity + threads)
  }

  @Test func theOrderOfEachThreadIsKept() {
    let queue = BoundedQueue<(Int, Int)>(capacity: 2)
    for number in 0..<3 {
      thread { for element in 0..<5000 { queue.enqueue((number, element)) } }
    }
    var next = [0, 0, 0]
    for _ in 0..<15_000 {
      guard let (from, element) = queue.dequeue() else { break }
      #expect(next[from] == element)
      next[from] = element + 1
    }
    #expect(next == [5000, 5000, 5000])
  }
}
