public import SystemIO

/// The identifier of an app, an extension or a group, as the platform's own records give it.
///
/// It is compared by its bytes. It may come from a file that nobody vouches for, and may hold any
/// byte; `LogicalName` makes a path component of it.
public struct BundleIdentifier: Hashable, Comparable, Sendable {
  public let bytes: ByteString

  /// The most bytes that an identifier may have; Apple's own limit for app identifiers is 155.
  public static let maximumLength = 200

  /// Makes an identifier, or nothing of no bytes or of more than `maximumLength`.
  public init?(_ bytes: ByteString) {
    guard !bytes.isEmpty, bytes.count <= Self.maximumLength else { return nil }
    self.bytes = bytes
  }

  /// The parts between dots.
  public var components: [ArraySlice<UInt8>] {
    bytes.bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
  }

  /// What follows the last dot: `Foo` of `org.gnome.Foo`.
  public var lastComponent: ByteString { ByteString(components.last ?? []) }

  /// Whether `other` is this identifier with further components: an app's extension, say.
  public func isPrefix(of other: BundleIdentifier) -> Bool {
    other.bytes.count > bytes.count && other.bytes.bytes.starts(with: bytes.bytes)
      && other.bytes.bytes[other.bytes.bytes.startIndex + bytes.count] == UInt8(ascii: ".")
  }

  public static func < (left: Self, right: Self) -> Bool { left.bytes < right.bytes }
}

extension BundleIdentifier: CustomStringConvertible {
  /// The identifier for a person, with escapes where it is not printable.
  public var description: String { bytes.description }
}
