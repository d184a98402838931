public import SystemIO

/// The identifier of an app, an extension or a group in the platform's records.
///
/// Identifiers are compared by their bytes. They can come from a file written by an app and serve
/// as directory names, so every identifier is a plain path component (`ByteString.nameFault`).
public struct BundleIdentifier: Hashable, Comparable, Sendable {
  public let bytes: ByteString

  /// The maximum length of an identifier in bytes; Apple's limit for app identifiers is 155.
  static let maximumLength = 200

  /// Creates an identifier, or returns nil if `fault(of:)` returns a reason.
  public init?(_ bytes: ByteString) {
    guard Self.fault(of: bytes) == nil else { return nil }
    self.bytes = bytes
  }

  /// Returns the reason why bytes are not a valid identifier: they are not a plain path component,
  /// are one of this program's own names (`OwnNames`), or exceed `maximumLength`. Returns nil if
  /// they are valid.
  public static func fault(of bytes: ByteString) -> String? {
    if let fault = bytes.nameFault { return fault }
    if OwnNames.has(bytes) { return "it is the name of one of this program's own directories" }
    return bytes.count > maximumLength
      ? "it has \(bytes.count) bytes, more than the limit of \(maximumLength)" : nil
  }

  /// The parts between dots.
  public var components: [ArraySlice<UInt8>] {
    bytes.bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
  }

  /// The part after the last dot: `Foo` in `org.gnome.Foo`.
  public var lastComponent: ByteString { ByteString(components.last ?? []) }

  /// Whether `other` is this identifier with further components, such as that of an app's
  /// extension.
  public func isPrefix(of other: BundleIdentifier) -> Bool {
    other.bytes.count > bytes.count && other.bytes.bytes.starts(with: bytes.bytes)
      && other.bytes.bytes[other.bytes.bytes.startIndex + bytes.count] == UInt8(ascii: ".")
  }

  public static func < (left: Self, right: Self) -> Bool { left.bytes < right.bytes }
}

extension BundleIdentifier: CustomStringConvertible {
  /// The identifier for output, with escapes for unprintable characters.
  public var description: String { bytes.description }
}
