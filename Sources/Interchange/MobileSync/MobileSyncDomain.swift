internal import SandboxModel
package import SystemIO

/// The domains of a backup as containers of a device.
///
/// | domain | container |
/// | --- | --- |
/// | `AppDomain-<id>` | `apps/<id>/data` |
/// | `AppDomainPlugin-<id>` | `apps/<app>/extensions/<id>/data` of the app whose identifier it begins with; otherwise a folder |
/// | `AppDomainGroup-<id>` | `groups/<id>` |
/// | every other one | `folders/<domain>` |
package struct MobileSyncDomains: Sendable {
  /// The identifiers of the installed apps, and of those with data.
  private let apps: Set<ByteString>

  /// Creates the domains of a device with these apps.
  package init(apps: some Sequence<ByteString>) { self.apps = Set(apps) }

  /// Returns the components of the container's logical path, or nil if the domain names none
  /// because it is not a plain directory name.
  package func container(of domain: ByteString) -> [ByteString]? {
    if let (kind, identifier) = Self.split(domain) {
      switch kind {
      case "AppDomain": return LogicalContainer.data(identifier).prefix.components
      case "AppDomainGroup": return LogicalContainer.group(identifier).prefix.components
      case "AppDomainPlugin":
        if let app = app(ofExtension: identifier.identifier) {
          let container = LogicalContainer.extension(identifier, of: LogicalName(app))
          return container.prefix.components
        }
      default: break
      }
    }
    guard BundleIdentifier.fault(of: domain) == nil else { return nil }
    return LogicalContainer.folder(LogicalName(domain)).prefix.components
  }

  /// Splits a domain at its first `-`; identifiers may contain more of them.
  private static func split(_ domain: ByteString) -> (kind: ByteString, name: LogicalName)? {
    let parts = domain.bytes.split(
      separator: UInt8(ascii: "-"), maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, BundleIdentifier(ByteString(parts[1])) != nil else { return nil }
    return (ByteString(parts[0]), LogicalName(ByteString(parts[1])))
  }

  /// Returns the app with the longest identifier that is a prefix of the extension's: an
  /// extension's identifier is its app's with further components (App Extension Programming Guide).
  private func app(ofExtension identifier: ByteString) -> ByteString? {
    var parts = identifier.bytes
    while let dot = parts.lastIndex(of: UInt8(ascii: ".")) {
      parts = parts[..<dot]
      let name = ByteString(parts)
      if apps.contains(name) { return name }
    }
    return nil
  }

  /// Returns the domain and the path in it of a logical path, or nil if it is outside the
  /// containers that a backup has. The reverse of `container(of:)`.
  package static func domain(of path: [ByteString]) -> (domain: ByteString, inner: [ByteString])? {
    guard let location = try? LogicalPath(ByteString(joining: path)).location else { return nil }
    let (container, inner) = (location.container, location.inner.components)
    let name = container.name.identifier
    switch container {
    case .data: return (joined("AppDomain", name), inner)
    case .extension: return (joined("AppDomainPlugin", name), inner)
    case .group: return (joined("AppDomainGroup", name), inner)
    case .folder: return (name, inner)
    default: return nil
    }
  }

  /// Whether a container has a domain that iOS does not know, such as a plain directory: a device
  /// does not restore it. The domains of iOS are those of containers and others named `…Domain`.
  package static func isUnknown(_ container: ByteString) -> Bool {
    guard let (domain, _) = domain(of: container.components) else { return false }
    let kind = domain.bytes.prefix { $0 != UInt8(ascii: "-") }
    return !containerKinds.contains(ByteString(kind))
      && !kind.suffix(6).elementsEqual("Domain".utf8)
  }

  private static let containerKinds: Set<ByteString> = [
    "AppDomain", "AppDomainGroup", "AppDomainPlugin",
  ]

  /// Whether a directory is above containers that a backup has, and so has no entry of its own.
  static func isAboveContainers(_ path: [ByteString]) -> Bool {
    switch path.count {
    case 0: true
    case 1: ["apps", "folders", "groups"].contains(path[0])
    case 2: path[0] == "apps"
    case 3, 4: path[0] == "apps" && path[2] == "extensions"
    default: false
    }
  }

  /// Returns the class of the container of a domain as the list of a backup names it, and the
  /// identifier; nil for a domain of the system.
  static func listedContainer(of domain: ByteString) -> (name: ByteString, contentClass: String)? {
    guard let (kind, name) = split(domain) else { return nil }
    switch kind {
    case "AppDomain": return (name.identifier, "Data/Application")
    case "AppDomainGroup": return (name.identifier, "Shared/AppGroup")
    case "AppDomainPlugin": return (name.identifier, "Data/PluginKitPlugin")
    default: return nil
    }
  }

  /// Returns the identifier of the app whose data a domain has; nil for other domains.
  static func app(of domain: ByteString) -> ByteString? {
    guard let (kind, name) = split(domain), kind == "AppDomain" else { return nil }
    return name.identifier
  }

  private static func joined(_ kind: String, _ name: ByteString) -> ByteString {
    ByteString(Array("\(kind)-".utf8) + Array(name.bytes))
  }
}
