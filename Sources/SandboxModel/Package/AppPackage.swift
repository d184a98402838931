public import SystemIO

/// An app as it comes: what a `.app` directory or an `.ipa` says of itself.
public struct AppPackage: Hashable, Sendable {
  /// Where it was read from.
  public let origin: PackageOrigin
  /// The bundle's folder: `Example.app`.
  public let bundleDirectory: ByteString
  /// How the bundle is laid out, which tells iOS's from macOS's.
  public let shape: BundleShape
  public let identifier: BundleIdentifier
  /// The name that people see.
  public let displayName: ByteString?
  /// The version that people see (`CFBundleShortVersionString`).
  public let version: ByteString?
  /// The build (`CFBundleVersion`).
  public let build: ByteString?
  /// The extensions that it brings, sorted by identifier, with their paths in the package.
  public let extensions: [AppExtension]
  /// The groups that entitlements name for the app or an extension, sorted: all are known.
  public let groups: [GroupMembership]
  /// Whether the app's own entitlements could be read, so that it has no other groups.
  public let hasKnownGroups: Bool
  /// What moves into a container when it is first made.
  public let migration: ContainerMigration?
  /// How much it holds.
  public let size: PackageSize
  /// What is odd and worth knowing, as that its program is encrypted.
  public let findings: [Finding]

  /// Makes a package's description; who makes it has read the package.
  public init(
    origin: PackageOrigin, bundleDirectory: ByteString, shape: BundleShape,
    identifier: BundleIdentifier, displayName: ByteString? = nil, version: ByteString? = nil,
    build: ByteString? = nil, extensions: [AppExtension] = [], groups: [GroupMembership] = [],
    hasKnownGroups: Bool = false, migration: ContainerMigration? = nil,
    size: PackageSize = PackageSize(), findings: [Finding] = []
  ) {
    self.origin = origin
    self.bundleDirectory = bundleDirectory
    self.shape = shape
    self.identifier = identifier
    self.displayName = displayName
    self.version = version
    self.build = build
    self.extensions = extensions
    self.groups = groups
    self.hasKnownGroups = hasKnownGroups
    self.migration = migration
    self.size = size
    self.findings = findings
  }
}

/// Where a package was read from.
public struct PackageOrigin: Hashable, Sendable {
  /// The path that was given.
  public let path: ByteString
  public let form: Form

  /// What a package may be.
  public enum Form: String, Hashable, Sendable {
    /// A directory that is the bundle.
    case folder
    /// A zip archive: an `.ipa`, or a bundle that was zipped.
    case archive
  }

  /// Makes an origin.
  public init(path: ByteString, form: Form) {
    self.path = path
    self.form = form
  }
}

/// How much a package holds.
public struct PackageSize: Hashable, Sendable {
  /// Directories, files and links, the bundle's own directory among them.
  public var entries: Int
  /// Bytes of all files.
  public var bytes: UInt64
  /// Bytes that it takes of a volume: each file in whole blocks of 4 KiB, and one for each directory.
  public private(set) var allocated: UInt64 = 0

  /// Makes a size; what it takes of a volume is not known by it.
  public init(entries: Int = 0, bytes: UInt64 = 0) {
    self.entries = entries
    self.bytes = bytes
  }

  /// Adds what an entry takes of a volume.
  public mutating func allocate(_ kind: PackageEntry.Kind) {
    let block: UInt64 = 4096
    switch kind {
    case .folder: allocated += block
    case .file(let bytes): allocated += bytes / block * block + (bytes % block == 0 ? 0 : block)
    case .link: break
    }
  }
}
