public import SystemIO

/// The path of an object in a storage: plain components, relative to the root, without `..`.
public struct ObjectPath: Hashable, Sendable {
  /// The names from the storage's root down.
  public let components: [ByteString]

  /// The root of the storage.
  public static let root = ObjectPath(unchecked: [])

  private init(unchecked components: [ByteString]) { self.components = components }

  /// Creates a path from a text such as `packs/ab`. Returns nil if a component is empty, `.`, `..`
  /// or contains a NUL.
  public init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    let components = parts.map { ByteString(String($0)) }
    guard components.allSatisfy(Self.isPlain) else { return nil }
    self.components = components
  }

  /// Returns the path of a child. In a name that is not a plain component, slashes, dots and NULs
  /// are replaced by underscores, so that no name leads elsewhere.
  public func appending(_ name: ByteString) -> ObjectPath {
    if Self.isPlain(name) { return ObjectPath(unchecked: components + [name]) }
    let harmless = name.bytes.map { $0 == 0x2f || $0 == 0x2e || $0 == 0 ? 0x5f : $0 }
    return ObjectPath(unchecked: components + [ByteString(harmless.isEmpty ? [0x5f] : harmless)])
  }

  /// The parent directory; the root's parent is the root.
  public var directory: ObjectPath { ObjectPath(unchecked: Array(components.dropLast())) }

  /// The last component; the root's is `.`.
  public var name: ByteString { components.last ?? "." }

  private static func isPlain(_ name: ByteString) -> Bool {
    !name.isEmpty && name != "." && name != ".." && !name.bytes.contains { $0 == 0x2f || $0 == 0 }
  }
}

extension ObjectPath: CustomStringConvertible {
  /// The components joined by slashes.
  public var description: String {
    components.isEmpty ? "." : components.map(\.description).joined(separator: "/")
  }
}
