package import SystemIO

/// An app of a device: an identifier found in a bundle, a data container or an installation.
package struct App: Hashable, Sendable {
  package let identifier: BundleIdentifier
  /// Whether its bundle exists; data can remain without one.
  package let isInstalled: Bool
  /// The display name, if the bundle contains one.
  package let displayName: ByteString?
  /// The displayed version (`CFBundleShortVersionString`).
  package let version: ByteString?
  /// The build (`CFBundleVersion`).
  package let build: ByteString?
  /// The extensions in the bundle, sorted by identifier.
  package let extensions: [Extension]
  /// The groups of the app and its extensions, sorted by identifier.
  package internal(set) var groups: [GroupMembership]
  /// The source of a Flatpak app's installation.
  package let installation: FlatpakInstallation?

  /// Creates an app.
  package init(
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
  package struct Extension: Hashable, Sendable {
    package let identifier: BundleIdentifier
    package let displayName: ByteString?
    package let version: ByteString?
    package let build: ByteString?
    /// Its directory in the bundle's container: `Example.app/PlugIns/Share.appex`.
    package let path: ByteString

    /// Creates an extension.
    package init(
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
  package struct GroupMembership: Hashable, Sendable {
    package let group: BundleIdentifier
    package let basis: Basis

    /// Creates a membership.
    package init(group: BundleIdentifier, basis: Basis) {
      self.group = group
      self.basis = basis
    }

    /// The source of a membership. Only known memberships can cause a removal; guesses are shown as
    /// such.
    package enum Basis: Hashable, Sendable {
      /// The entitlement `com.apple.security.application-groups`, from the given source.
      case known(EntitlementSource)
      /// A policy lists the app as a member of the group.
      case stated
      /// The identifiers are similar; see `GroupGuess`.
      case guessed
    }

    /// Whether an entitlement or a policy states the membership.
    package var isKnown: Bool { basis != .guessed }
  }

  /// The source of a bundle's entitlements.
  package enum EntitlementSource: String, Hashable, Sendable {
    /// The code signature of the bundle's executable.
    case signature = "code-signature"
    /// The section `__TEXT,__entitlements` of an executable built for the simulator.
    case section = "entitlements-section"
    case archivedEntitlements = "archived-expanded-entitlements.xcent"
    case provisioningProfile = "embedded.mobileprovision"
  }

  /// The source of a Flatpak app's installation, and the deployed version.
  package struct FlatpakInstallation: Hashable, Sendable {
    /// The scope of the installation.
    package enum Scope: String, Hashable, Sendable { case user, system }

    package let scope: Scope
    package let architecture: ByteString
    package let branch: ByteString
    /// The checksum of the deployed commit.
    package let commit: ByteString
    /// The name of the remote, if the deployment record contains it.
    package let origin: ByteString?
    /// The URL of the remote in the installation's configuration.
    package let remoteURL: ByteString?
    /// The runtime, `org.gnome.Platform/x86_64/46`.
    package let runtime: ByteString?

    /// Creates an installation.
    package init(
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
