/// A queue between threads that holds at most `capacity` elements: `enqueue` waits while it is
/// full, `dequeue` waits while it is empty.
public final class BoundedQueue<Element: Sendable>: Sendable {
  private let state: ConditionLock<State>

  private struct State: Sendable {
    /// The waiting elements from `head` on; taken ones are nil, which releases their memory.
    var elements: [Element?] = []
    var head = 0
    var isClosed = false
    let capacity: Int

    var count: Int { elements.count - head }
    var isFull: Bool { count >= capacity && !isClosed }
    var isWaitedFor: Bool { count == 0 && !isClosed }

    mutating func dequeue() -> Element? {
      guard head < elements.count else { return nil }
      let element = elements[head]
      elements[head] = nil
      head += 1
      if head > 64, head * 2 > elements.count {
        elements.removeFirst(head)
        head = 0
      }
      return element
    }
  }

  /// Creates an empty queue. A capacity below 1 counts as 1.
  public init(capacity: Int) {
    state = ConditionLock(State(capacity: max(1, capacity)))
  }

  /// Appends an element, waiting for room. Returns false if the queue is closed; the element is
  /// then not added.
  @discardableResult
  public func enqueue(_ element: Element) -> Bool {
    unsafe state.withLock { state, wait in
      while unsafe state.pointee.isFull { wait() }
      if unsafe state.pointee.isClosed { return false }
      unsafe state.pointee.elements.append(element)
      return true
    }
  }

  /// Appends an element without waiting. Returns false if the queue is full or closed.
  public func offer(_ element: Element) -> Bool {
    unsafe state.withLock { state, _ in
      if unsafe state.pointee.isFull || state.pointee.isClosed { return false }
      unsafe state.pointee.elements.append(element)
      return true
    }
  }

  /// Takes the first element, waiting at most `milliseconds`; nil if none arrives.
  public func dequeue(waitingAtMost milliseconds: Int) -> Element? {
    unsafe state.withLock(waitingAtMost: milliseconds) { state, wait in
      while unsafe state.pointee.isWaitedFor { if !wait() { break } }
      return unsafe state.pointee.dequeue()
    }
  }

  /// Takes the first element, waiting for one; nil if the queue is closed and empty.
  public func dequeue() -> Element? {
    unsafe state.withLock { state, wait in
      while unsafe state.pointee.isWaitedFor { wait() }
      return unsafe state.pointee.dequeue()
    }
  }

  /// Refuses further elements. Those in the queue can still be taken.
  public func close() {
    unsafe state.withLock { state, _ in unsafe state.pointee.isClosed = true }
  }
}
