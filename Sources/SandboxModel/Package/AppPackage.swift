public import SystemIO

/// An app for installation, described by the content of a `.app` directory or an `.ipa`.
public struct AppPackage: Hashable, Sendable {
  /// The origin of the package.
  public let origin: PackageOrigin
  /// The bundle's directory, `Example.app`.
  public let bundleDirectory: ByteString
  /// The bundle's structure, which distinguishes iOS from macOS.
  public let shape: BundleShape
  public let identifier: BundleIdentifier
  /// The display name.
  public let displayName: ByteString?
  /// The displayed version (`CFBundleShortVersionString`).
  public let version: ByteString?
  /// The build (`CFBundleVersion`).
  public let build: ByteString?
  /// Its extensions, sorted by identifier, with their paths in the package.
  public let extensions: [AppExtension]
  /// The groups that the entitlements of the app or an extension name, sorted; none is guessed.
  public let groups: [GroupMembership]
  /// Whether the app's own entitlements could be read, so that it has no other groups.
  public let hasKnownGroups: Bool
  /// The data that moves into a container when it is first created.
  public let migration: ContainerMigration?
  /// The size of the content.
  public let size: PackageSize
  /// Notes and warnings, for example that the executable is encrypted.
  public let findings: [Finding]

  /// Creates the description of a package that the caller has read.
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

/// The origin of a package.
public struct PackageOrigin: Hashable, Sendable {
  /// The path as given.
  public let path: ByteString
  public let form: Form

  /// The form of a package.
  public enum Form: String, Hashable, Sendable {
    /// A bundle directory.
    case folder
    /// A zip archive: an `.ipa`, or a zipped bundle.
    case archive
  }

  /// Creates an origin.
  public init(path: ByteString, form: Form) {
    self.path = path
    self.form = form
  }
}

/// The size of a package.
public struct PackageSize: Hashable, Sendable {
  /// The number of directories, files and links, including the bundle's directory.
  public var entries: Int
  /// The size of all files in bytes.
  public var bytes: UInt64
  /// The space on a volume in bytes: whole blocks of 4 KiB for each file, and one block for each
  /// directory.
  public private(set) var allocated: UInt64 = 0

  /// Creates a size; `allocated` is 0.
  public init(entries: Int = 0, bytes: UInt64 = 0) {
    self.entries = entries
    self.bytes = bytes
  }

  /// Adds the space that an entry takes on a volume.
  public mutating func allocate(_ kind: PackageEntry.Kind) {
    let block: UInt64 = 4096
    switch kind {
    case .folder: allocated += block
    case .file(let bytes): allocated += bytes / block * block + (bytes % block == 0 ? 0 : block)
    case .link: break
    }
  }
}
