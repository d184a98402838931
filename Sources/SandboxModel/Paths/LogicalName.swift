public import SystemIO

/// The component of a logical path that names an app, an extension, a group or a directory.
///
/// It is an identifier, and where that alone does not tell two containers of a device apart, the
/// name of the container's own directory (its UUID): `com.example.app`, `com.example.app~<UUID>` for
/// a second container that claims the same app, `~<UUID>` for one that nothing identifies. In
/// both parts `/`, NUL, `%` and `~` are written as `%2F %00 %25 %7E`, and of `.` and `..` the
/// first dot as `%2E`; so any bytes give one component, and the component gives the bytes back.
public struct LogicalName: Hashable, Sendable {
  /// The identifier; empty when nothing identifies the container.
  public let identifier: ByteString
  /// The container's own directory, where the identifier alone does not name it.
  public let instance: ByteString?

  /// Makes a name. One of an empty identifier and no instance is no path component: it names
  /// nothing, and `LogicalPath` refuses it.
  public init(_ identifier: ByteString, instance: ByteString? = nil) {
    self.identifier = identifier
    self.instance = instance
  }

  /// Reads a component; nil when it is not what `component` would write.
  public init?(component: ByteString) {
    let parts = component.bytes.split(
      separator: Self.tilde, maxSplits: 1, omittingEmptySubsequences: false)
    guard let first = parts.first, let identifier = Self.unescaped(first) else { return nil }
    self.identifier = identifier
    if parts.count > 1 {
      guard let instance = Self.unescaped(parts[1]), !instance.isEmpty else { return nil }
      self.instance = instance
    } else {
      instance = nil
    }
    guard !component.isEmpty, self.component == component else { return nil }
  }

  /// The path component.
  public var component: ByteString {
    let escaped = Self.escaped(identifier)
    guard let instance else { return ByteString(escaped) }
    return ByteString(escaped + [Self.tilde] + Self.escaped(instance))
  }

  private static let tilde = UInt8(ascii: "~")
  private static let percent = UInt8(ascii: "%")
  private static let dot = UInt8(ascii: ".")
  private static let digits = Array("0123456789ABCDEF".utf8)

  private static func escaped(_ name: ByteString) -> [UInt8] {
    let isDots = name == "." || name == ".."
    var result: [UInt8] = []
    for (place, byte) in name.bytes.enumerated() {
      let isSpecial = byte == 0 || byte == UInt8(ascii: "/") || byte == percent || byte == tilde
      if isSpecial || isDots && place == 0 {
        result += [percent, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      } else {
        result.append(byte)
      }
    }
    return result
  }

  private static func unescaped(_ text: ArraySlice<UInt8>) -> ByteString? {
    var result: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
      guard byte == percent else {
        result.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap({ digits.firstIndex(of: $0) }),
        let low = rest.popFirst().flatMap({ digits.firstIndex(of: $0) })
      else { return nil }
      result.append(UInt8(high << 4 | low))
    }
    return ByteString(result)
  }
}

extension LogicalName: CustomStringConvertible {
  /// The component for a person, with escapes where it is not printable.
  public var description: String { component.description }
}
