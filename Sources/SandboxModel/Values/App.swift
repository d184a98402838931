public import SystemIO

/// An app of a device: an identifier that a bundle, a data container or an installation claims.
public struct App: Hashable, Sendable {
  public let identifier: BundleIdentifier
  /// Whether its bundle is there; data without an app has none.
  public let isInstalled: Bool
  /// The name that people see, where the bundle tells.
  public let displayName: ByteString?
  /// The version that people see (`CFBundleShortVersionString`).
  public let version: ByteString?
  /// The build (`CFBundleVersion`).
  public let build: ByteString?
  /// The extensions that the bundle brings, sorted by identifier.
  public let extensions: [AppExtension]
  /// The groups that the app or an extension of it belongs to, sorted by identifier.
  public internal(set) var groups: [GroupMembership]
  /// Where a Flatpak app was installed from.
  public let installation: FlatpakInstallation?

  init(
    _ identifier: BundleIdentifier, isInstalled: Bool, info: BundleInfo? = nil,
    extensions: [AppExtension] = [], groups: [GroupMembership] = [],
    installation: FlatpakInstallation? = nil
  ) {
    self.identifier = identifier
    self.isInstalled = isInstalled
    displayName = info?.displayName
    version = info?.version
    build = info?.build
    self.extensions = extensions
    self.groups = groups
    self.installation = installation
  }
}

/// An extension that an app's bundle brings.
public struct AppExtension: Hashable, Sendable {
  public let identifier: BundleIdentifier
  public let displayName: ByteString?
  public let version: ByteString?
  public let build: ByteString?
  /// Its directory in the bundle's container: `Example.app/PlugIns/Share.appex`.
  public let path: ByteString

  /// Makes an extension.
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

/// That an app belongs to a group, and how that is known.
public struct GroupMembership: Hashable, Sendable {
  public let group: BundleIdentifier
  public let basis: Basis

  /// Makes a membership.
  public init(group: BundleIdentifier, basis: Basis) {
    self.group = group
    self.basis = basis
  }

  /// What says so. Only what is known may remove anything; a guess is shown as one.
  public enum Basis: Hashable, Sendable {
    /// The entitlement `com.apple.security.application-groups`, in this kind of place.
    case known(EntitlementSource)
    /// A policy names the app among the group's members.
    case stated
    /// The identifiers are alike: see `GroupGuess`.
    case guessed
  }

  /// Whether an entitlement or a policy says so.
  public var isKnown: Bool { basis != .guessed }
}

/// Where a bundle's entitlements were read.
public enum EntitlementSource: String, Hashable, Sendable {
  /// The code signature of the bundle's program.
  case signature = "code-signature"
  /// The section `__TEXT,__entitlements` of a program built for the simulator.
  case section = "entitlements-section"
  case archivedEntitlements = "archived-expanded-entitlements.xcent"
  case provisioningProfile = "embedded.mobileprovision"
}

/// Where a Flatpak app was installed from, and what is deployed.
public struct FlatpakInstallation: Hashable, Sendable {
  /// For whom it is installed.
  public enum Scope: String, Hashable, Sendable { case user, system }

  public let scope: Scope
  public let architecture: ByteString
  public let branch: ByteString
  /// The checksum of the deployed commit.
  public let commit: ByteString
  /// The name of the remote it came from, where the deployment's record tells.
  public let origin: ByteString?
  /// The remote's address in the installation's configuration.
  public let remoteURL: ByteString?
  /// The runtime it runs on: `org.gnome.Platform/x86_64/46`.
  public let runtime: ByteString?
}
