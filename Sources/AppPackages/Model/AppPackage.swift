package import DeviceDiscovery
package import SandboxModel
package import SystemIO

/// An app for installation, described by the content of a `.app` directory or an `.ipa`.
package struct AppPackage: Hashable, Sendable {
  /// The origin of the package.
  let origin: Origin
  /// The bundle's directory, `Example.app`.
  package let bundleDirectory: ByteString
  /// The bundle's structure, which distinguishes iOS from macOS.
  package let shape: BundleShape
  package let identifier: BundleIdentifier
  /// The display name.
  let displayName: ByteString?
  /// The displayed version (`CFBundleShortVersionString`).
  package let version: ByteString?
  /// The build (`CFBundleVersion`).
  package let build: ByteString?
  /// Its extensions, sorted by identifier, with their paths in the package.
  package let extensions: [App.Extension]
  /// The groups that the entitlements of the app or an extension name, sorted; none is guessed.
  package let groups: [App.GroupMembership]
  /// Whether the app's own entitlements could be read, so that it has no other groups.
  let hasKnownGroups: Bool
  /// The data that moves into a container when it is first created.
  package let migration: ContainerMigration?
  /// The size of the content.
  package let size: Size
  /// Notes and warnings, for example that the executable is encrypted.
  package let findings: [Finding]

  /// Creates the description of a package that the caller has read.
  init(
    origin: Origin, bundleDirectory: ByteString, shape: BundleShape,
    identifier: BundleIdentifier, displayName: ByteString? = nil, version: ByteString? = nil,
    build: ByteString? = nil, extensions: [App.Extension] = [], groups: [App.GroupMembership] = [],
    hasKnownGroups: Bool = false, migration: ContainerMigration? = nil,
    size: Size = Size(), findings: [Finding] = []
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

extension AppPackage {
  /// The origin of a package.
  struct Origin: Hashable, Sendable {
    /// The path as given.
    let path: ByteString
    let form: Form

    /// The form of a package.
    enum Form: String, Hashable, Sendable {
      /// A bundle directory.
      case directory = "folder"
      /// A zip archive: an `.ipa`, or a zipped bundle.
      case archive
    }
  }

  /// The size of a package.
  package struct Size: Hashable, Sendable {
    /// The number of directories, files and links, including the bundle's directory.
    package var entries: Int
    /// The size of all files in bytes.
    package var bytes: UInt64
    /// The space on a volume in bytes: whole blocks of 4 KiB for each file, and one block for each
    /// directory.
    package private(set) var allocated: UInt64 = 0

    /// Creates a size; `allocated` is 0.
    package init(entries: Int = 0, bytes: UInt64 = 0) {
      self.entries = entries
      self.bytes = bytes
    }

    /// Adds the space that an entry takes on a volume.
    mutating func allocate(_ kind: PackageEntry.Kind) {
      let block: UInt64 = 4096
      switch kind {
      case .directory: allocated += block
      case .file(let bytes): allocated += bytes / block * block + (bytes % block == 0 ? 0 : block)
      case .link: break
      }
    }
  }
}
