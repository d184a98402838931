/// A JSON object that is written member by member. Its long arrays are made element by element
/// while they are written, so they are never in memory as a whole.
public struct JSONStream {
  /// The value of a member.
  public enum Value {
    case value(JSON)
    /// An array, whose elements are made when they are written.
    case elements(any Sequence<JSON>)
    case object(JSONStream)
  }

  private var members: [(name: String, value: Value)]

  /// Creates an object with members that are in memory.
  public init(_ members: [JSON.Member]) {
    self.members = members.map { ($0.name, .value($0.value)) }
  }

  /// Adds members that are in memory.
  public mutating func add(_ members: [JSON.Member]) {
    self.members += members.map { ($0.name, .value($0.value)) }
  }

  /// Adds a member.
  public mutating func add(_ name: String, _ value: Value) { members.append((name, value)) }

  /// The maximum number of bytes to hold before they are written, except for one large value.
  static let pieceSize = 64 << 10

  /// Writes the object on one line without spaces, members in order. Calls `emit` with each piece.
  public func write(to emit: ([UInt8]) throws -> Void) rethrows {
    var buffer: [UInt8] = []
    try write(to: &buffer, emit)
    try emit(buffer)
  }

  private func write(to buffer: inout [UInt8], _ emit: ([UInt8]) throws -> Void) rethrows {
    buffer.append(UInt8(ascii: "{"))
    for (index, member) in members.enumerated() {
      if index > 0 { buffer.append(UInt8(ascii: ",")) }
      JSON.string(member.name).write(to: &buffer)
      buffer.append(UInt8(ascii: ":"))
      switch member.value {
      case .value(let value): value.write(to: &buffer)
      case .elements(let elements): try Self.write(elements, to: &buffer, emit)
      case .object(let object): try object.write(to: &buffer, emit)
      }
      try Self.flush(&buffer, to: emit)
    }
    buffer.append(UInt8(ascii: "}"))
  }

  private static func write(
    _ elements: any Sequence<JSON>, to buffer: inout [UInt8], _ emit: ([UInt8]) throws -> Void
  ) rethrows {
    buffer.append(UInt8(ascii: "["))
    var isFirst = true
    for element in elements {
      if !isFirst { buffer.append(UInt8(ascii: ",")) }
      isFirst = false
      element.write(to: &buffer)
      try Self.flush(&buffer, to: emit)
    }
    buffer.append(UInt8(ascii: "]"))
  }

  private static func flush(_ buffer: inout [UInt8], to emit: ([UInt8]) throws -> Void) rethrows {
    guard buffer.count >= pieceSize else { return }
    try emit(buffer)
    buffer.removeAll(keepingCapacity: true)
  }
}
