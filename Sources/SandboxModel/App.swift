public import SystemIO

/// An app of a device: an identifier found in a bundle, a data container or an installation.
public struct App: Hashable, Sendable {
  public let identifier: BundleIdentifier
  /// Whether its bundle exists; data can remain without one.
  public let isInstalled: Bool
  /// The display name, if the bundle contains one.
  public let displayName: ByteString?
  /// The displayed version (`CFBundleShortVersionString`).
  public let version: ByteString?
  /// The build (`CFBundleVersion`).
  public let build: ByteString?
  /// The extensions in the bundle, sorted by identifier.
  public let extensions: [Extension]
  /// The groups of the app and its extensions, sorted by identifier.
  public internal(set) var groups: [GroupMembership]
  /// The source of a Flatpak app's installation.
  public let installation: FlatpakInstallation?

  /// Creates an app.
  public init(
    _ identifier: BundleIdentifier, isInstalled: Bool, displayName: ByteString? = nil,
    version: ByteString? = nil, build: ByteString? = nil, extensions: [Extension] = [],
    groups: [GroupMembership] = [], installation: FlatpakInstallation? = nil
  ) {
    self.identifier = identifier
    self.isInstalled = isInstalled
    self.displayName = displayName
    self.version = version
    self.build = build
    self.extensions = extensions
    self.groups = groups
    self.installation = installation
  }
}

extension App {
  /// An extension in an app's bundle.
  public struct Extension: Hashable, Sendable {
    public let identifier: BundleIdentifier
    public let displayName: ByteString?
    public let version: ByteString?
    public let build: ByteString?
    /// Its directory in the bundle's container: `Example.app/PlugIns/Share.appex`.
    public let path: ByteString

    /// Creates an extension.
    public init(
      identifier: BundleIdentifier, displayName: ByteString? = nil, version: ByteString? = nil,
      build: ByteString? = nil, path: ByteString
    ) {
      self.identifier = identifier
      self.displayName = displayName
      self.version = version
      self.build = build
      self.path = path
    }
  }

  /// An app's membership in a group, and its source.
  public struct GroupMembership: Hashable, Sendable {
    public let group: BundleIdentifier
    public let basis: Basis

    /// Creates a membership.
    public init(group: BundleIdentifier, basis: Basis) {
      self.group = group
      self.basis = basis
    }

    /// The source of a membership. Only known memberships can cause a removal; guesses are shown as
    /// such.
    public enum Basis: Hashable, Sendable {
      /// The entitlement `com.apple.security.application-groups`, from the given source.
      case known(EntitlementSource)
      /// A policy lists the app as a member of the group.
      case stated
      /// The identifiers are similar; see `GroupGuess`.
      case guessed
    }

    /// Whether an entitlement or a policy states the membership.
    public var isKnown: Bool { basis != .guessed }
  }

  /// The source of a bundle's entitlements.
  public enum EntitlementSource: String, Hashable, Sendable {
    /// The code signature of the bundle's executable.
    case signature = "code-signature"
    /// The section `__TEXT,__entitlements` of an executable built for the simulator.
    case section = "entitlements-section"
    case archivedEntitlements = "archived-expanded-entitlements.xcent"
    case provisioningProfile = "embedded.mobileprovision"
  }

  /// The source of a Flatpak app's installation, and the deployed version.
  public struct FlatpakInstallation: Hashable, Sendable {
    /// The scope of the installation.
    public enum Scope: String, Hashable, Sendable { case user, system }

    public let scope: Scope
    public let architecture: ByteString
    public let branch: ByteString
    /// The checksum of the deployed commit.
    public let commit: ByteString
    /// The name of the remote, if the deployment record contains it.
    public let origin: ByteString?
    /// The URL of the remote in the installation's configuration.
    public let remoteURL: ByteString?
    /// The runtime, `org.gnome.Platform/x86_64/46`.
    public let runtime: ByteString?

    /// Creates an installation.
    public init(
      scope: Scope, architecture: ByteString, branch: ByteString, commit: ByteString,
      origin: ByteString?, remoteURL: ByteString?, runtime: ByteString?
    ) {
      self.scope = scope
      self.architecture = architecture
      self.branch = branch
      self.commit = commit
      self.origin = origin
      self.remoteURL = remoteURL
      self.runtime = runtime
    }
  }
}
