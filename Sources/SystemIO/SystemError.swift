/// A failed system call: the operation, the path and the reason.
package struct SystemError: Error, Hashable, Sendable {
  /// The operation that failed.
  package let operation: Operation
  /// The path as far as it is known: the name given to the call, completed by its callers.
  package let path: ByteString
  /// The error number (errno).
  package let number: Int32

  /// Creates an error of a failed call.
  package init(_ operation: Operation, _ path: ByteString, number: Int32) {
    self.operation = operation
    self.path = path
    self.number = number
  }

  /// Returns the same error with the directory's path prepended to the name.
  package func inside(_ directory: ByteString) -> SystemError {
    path.isAbsolute ? self : SystemError(operation, directory.appending(path), number: number)
  }

  /// The operation of a system call, as text for messages and as the name of a fault point.
  package enum Operation: String, CaseIterable, Sendable {
    case open, read, write, list, link, rename, remove, lock, map, clone, trust
    case status = "get the status of"
    case close = "close"
    case create = "create"
    case createDirectory = "create the directory"
    case createLink = "create the symbolic link"
    case createSpecial = "create the special file"
    case readLink = "read the link"
    case sync = "write to disk"
    case seek = "find the holes of"
    case truncate = "set the size of"
    case setMode = "set the mode of"
    case setOwner = "set the owner of"
    case setTimes = "set the times of"
    case readAttributes = "read the attributes of"
    case setAttributes = "set the attributes of"
    case readFlags = "read the flags of"
    case setFlags = "set the flags of"
    case space = "get the free space of"
    case random = "get random bytes from"
    case startThread = "start a thread for"
    case watchSignals = "watch the signals of"
    case run = "run the program"
  }
}

extension SystemError {
  /// Runs a call that returns a result or a negative error number, after its fault point.
  @inline(__always)
  static func check(
    _ operation: Operation, _ path: @autoclosure () -> ByteString, running call: () -> Int
  ) throws(SystemError) -> Int {
    if Faults.areArmed, let number = Faults.next(operation) {
      throw SystemError(operation, path(), number: number)
    }
    let result = call()
    if result < 0 { throw SystemError(operation, path(), number: Int32(-result)) }
    return result
  }

  /// Runs a call whose failure is a common answer: the negative error numbers accepted by
  /// `isAnswer` are returned without the cost of throwing.
  @inline(__always)
  static func ask(
    _ operation: Operation, _ path: @autoclosure () -> ByteString, unless isAnswer: (Int32) -> Bool,
    running call: () -> Int
  ) throws(SystemError) -> Int {
    let injected = Faults.areArmed ? Faults.next(operation) : nil
    let result = injected.map { -Int($0) } ?? call()
    if result < 0, !isAnswer(Int32(-result)) {
      throw SystemError(operation, path(), number: Int32(-result))
    }
    return result
  }
}
