public import SystemIO

/// A path that is independent of container UUIDs and devices:
/// `apps/com.example.app/data/Documents/x`.
///
/// It is relative, and no component is empty, `.` or `..` or contains a NUL, so it is unambiguous
/// and cannot leave the tree in which it is resolved. It need not name an existing entry.
public struct LogicalPath: Hashable, Comparable, Sendable {
  /// The components joined with `/`; empty for the root.
  public let bytes: ByteString

  /// The path above all apps, groups and directories.
  public static let root = LogicalPath(checked: "")

  private init(checked bytes: ByteString) { self.bytes = bytes }

  /// Creates a path; the empty one is the root.
  ///
  /// - Throws: `logicalPath` for a path that is absolute, ends with a slash, or has an empty
  ///   component, `.`, `..` or a NUL.
  public init(_ bytes: ByteString) throws(ModelError) {
    if let reason = Self.fault(of: bytes) {
      throw ModelError(
        .logicalPath, "use the logical path", on: bytes, reason: reason,
        hint: "write it as 'apps/com.example.app/data/Documents'")
    }
    self.bytes = bytes
  }

  /// Joins a container's root and a path in it, which is empty for the root itself.
  public init(_ container: LogicalContainer, _ inner: ByteString = "") throws(ModelError) {
    if inner.isAbsolute {
      throw ModelError(
        .logicalPath, "use the path in a container", on: inner, reason: "it is absolute")
    }
    try self.init(container.prefix.appending(inner))
  }

  private static func fault(of path: ByteString) -> String? {
    if path.isEmpty { return nil }
    if path.isAbsolute { return "it is absolute, and logical paths are relative" }
    if path.hasNUL { return "it contains a NUL byte" }
    for part in path.bytes.split(separator: ByteString.slash, omittingEmptySubsequences: false) {
      if part.isEmpty { return "it has an empty component" }
      if part.elementsEqual(".".utf8) { return "it has '.' as a component" }
      if part.elementsEqual("..".utf8) { return "it has '..' as a component" }
    }
    return nil
  }

  /// The container and the path in it (empty for its root), or nil for paths above a container
  /// (`apps/com.example.app`) and unknown forms.
  public var location: (container: LogicalContainer, inner: ByteString)? {
    let parts = bytes.components
    var length = 0
    guard let container = LogicalContainer(parts, length: &length) else { return nil }
    return (container, ByteString(joining: parts.dropFirst(length)))
  }

  public static func < (left: Self, right: Self) -> Bool { left.bytes < right.bytes }
}

extension LogicalPath: CustomStringConvertible {
  /// The path for output, with escapes for unprintable characters.
  public var description: String { bytes.description }
}

/// A component of a logical path that names an app, an extension, a group or a directory.
///
/// It is an identifier and, if that does not distinguish two containers of a device, the name of
/// the container's directory (its UUID): `com.example.app`, `com.example.app~<UUID>` for a second
/// container with the same identifier, `~<UUID>` for an unidentified one. In both parts `/`, NUL,
/// `%` and `~` are written as `%2F %00 %25 %7E`, and the first dot of `.` and `..` as `%2E`. Any
/// bytes therefore form one component, which can be converted back.
public struct LogicalName: Hashable, Sendable {
  /// The identifier; empty for an unidentified container.
  public let identifier: ByteString
  /// The name of the container's directory, if the identifier alone is not unique.
  public let instance: ByteString?

  /// Creates a name. With an empty identifier and no instance it is not a valid component, and
  /// `LogicalPath` refuses it.
  public init(_ identifier: ByteString, instance: ByteString? = nil) {
    self.identifier = identifier
    self.instance = instance
  }

  /// Parses a component, or returns nil if it is not in the form that `component` produces.
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
    for (index, byte) in name.bytes.enumerated() {
      let isSpecial = byte == 0 || byte == UInt8(ascii: "/") || byte == percent || byte == tilde
      if isSpecial || isDots && index == 0 {
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
  /// The component for output, with escapes for unprintable characters.
  public var description: String { component.description }
}
