@testable import SystemIO

/// A number shared by threads, protected by a pthread lock, which the thread sanitizer understands.
final class Counter: Sendable {
  private let number = ConditionLock(0)

  var value: Int { number.withLock { number, _ in number.pointee } }

  @discardableResult
  func add(_ amount: Int = 1) -> Int {
    number.withLock { number, _ in
      number.pointee += amount
      return number.pointee
    }
  }

  func raise(to value: Int) {
    number.withLock { number, _ in number.pointee = max(number.pointee, value) }
  }
}
