package import Codecs
internal import SandboxModel
package import SystemIO

/// The app that a container or a package belongs to, as its property lists name it.
package struct AppIdentity: Hashable, Sendable {
  package var identifier: ByteString
  /// The version for people (`CFBundleShortVersionString`).
  package var version: String?
  /// The build (`CFBundleVersion`).
  package var build: String?

  /// The maximum size of a property list that names an app in bytes. That of the largest apps has a
  /// few hundred kilobytes.
  package static let listLimit = 16 << 20
  /// The maximum size of a version in bytes: Apple's have at most 18 characters.
  private static let versionLimit = 256

  /// Creates an identity.
  package init(identifier: ByteString, version: String? = nil, build: String? = nil) {
    (self.identifier, self.version, self.build) = (identifier, version, build)
  }

  /// The keys of the identifier: of Info.plist and AppDataInfo.plist, of the container manager's
  /// metadata, and of iTunesMetadata.plist.
  private static let keys = [
    "CFBundleIdentifier", "MCMMetadataIdentifier", "softwareVersionBundleId",
  ]

  /// Takes the identity from a property list, or returns nil if it names no valid identifier.
  package init?(_ list: PropertyList) {
    let names = Self.keys.lazy.compactMap { list[$0]?.stringValue.map { ByteString($0) } }
    guard let name = names.first(where: { BundleIdentifier.fault(of: $0) == nil }) else {
      return nil
    }
    func text(_ key: String) -> String? {
      list[key]?.stringValue.flatMap { $0.utf8.count <= Self.versionLimit ? $0 : nil }
    }
    self.init(
      identifier: name,
      version: text("CFBundleShortVersionString") ?? text("bundleShortVersionString"),
      build: text("CFBundleVersion") ?? text("bundleVersion"))
  }

  /// Takes the identity from the bytes of a property list, or returns nil if there is none.
  package init?(parsing bytes: [UInt8]) {
    let limits = PropertyList.Limits(bytes: Self.listLimit, objects: 200_000)
    guard let list = try? PropertyList(reading: bytes, limits: limits) else { return nil }
    self.init(list)
  }

  /// The app for a snapshot.
  var foreignApp: ForeignApp {
    ForeignApp(identifier: identifier, build: build, version: version)
  }

  /// The name as a component of a logical path.
  var name: LogicalName { LogicalName(identifier) }

  /// The list that Xcode writes beside the data (`AppDataInfo.plist`).
  var appDataInfo: PropertyList {
    list(["CFBundleIdentifier", "CFBundleShortVersionString", "CFBundleVersion"])
  }

  /// The list of a package (`iTunesMetadata.plist`).
  var storeMetadata: PropertyList {
    list(["softwareVersionBundleId", "bundleShortVersionString", "bundleVersion"])
  }

  /// Returns a list with the identifier, the version and the build, as far as they are known.
  private func list(_ keys: [String]) -> PropertyList {
    let texts = zip(keys, [identifier.utf8, version, build])
    return .dictionary(
      texts.compactMap { key, text in text.map { PropertyList.Member(key, .string($0)) } })
  }
}
