import Synchronization

/// A number that threads share.
final class Counter: Sendable {
  private let number = Mutex(0)

  var value: Int { number.withLock { $0 } }

  @discardableResult
  func add(_ amount: Int = 1) -> Int {
    number.withLock {
      $0 += amount
      return $0
    }
  }

  func raise(to value: Int) { number.withLock { $0 = max($0, value) } }
}
