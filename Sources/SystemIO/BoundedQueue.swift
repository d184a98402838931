/// A queue between threads that holds at most `capacity` elements: who puts waits while it is full,
/// who takes waits while it is empty. Memory is bounded by it, so capacity counts the scarce thing.
public final class BoundedQueue<Element: Sendable>: Sendable {
  private let state: ConditionLock<State>

  private struct State: Sendable {
    /// What waits, from `head` on; before it nil, so that what was taken is not kept in memory.
    var elements: [Element?] = []
    var head = 0
    var isClosed = false
    let capacity: Int

    var count: Int { elements.count - head }
    var isFull: Bool { count >= capacity && !isClosed }
    var isWaitedFor: Bool { count == 0 && !isClosed }

    mutating func take() -> Element? {
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

  /// Makes an empty queue; the capacity is at least 1.
  public init(capacity: Int) {
    state = ConditionLock(State(capacity: max(1, capacity)))
  }

  /// Puts an element at the end, waiting for room. False when the queue was closed: the element is
  /// not in it then.
  @discardableResult
  public func put(_ element: Element) -> Bool {
    unsafe state.withLock { state, wait in
      while unsafe state.pointee.isFull { wait() }
      if unsafe state.pointee.isClosed { return false }
      unsafe state.pointee.elements.append(element)
      return true
    }
  }

  /// Puts an element at the end if there is room at once; false when there is none, or when the
  /// queue was closed.
  public func offer(_ element: Element) -> Bool {
    unsafe state.withLock { state, _ in
      if unsafe state.pointee.isFull || state.pointee.isClosed { return false }
      unsafe state.pointee.elements.append(element)
      return true
    }
  }

  /// Takes the first element, waiting for one at most so long; nil when none came.
  public func take(waitingAtMost milliseconds: Int) -> Element? {
    unsafe state.withLock(waitingAtMost: milliseconds) { state, wait in
      while unsafe state.pointee.isWaitedFor { if !wait() { break } }
      return unsafe state.pointee.take()
    }
  }

  /// Takes the first element, waiting for one; nil when the queue is closed and empty.
  public func take() -> Element? {
    unsafe state.withLock { state, wait in
      while unsafe state.pointee.isWaitedFor { wait() }
      return unsafe state.pointee.take()
    }
  }

  /// Lets no more elements in; those in it can still be taken.
  public func close() {
    unsafe state.withLock { state, _ in unsafe state.pointee.isClosed = true }
  }
}
