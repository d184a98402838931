public import SystemIO

/// A container as logical paths name it, whatever its UUID and place on this device:
///
/// | container | prefix |
/// | --- | --- |
/// | bundle | `apps/<app>/bundle`, with `<Name>.app` below it |
/// | data | `apps/<app>/data` |
/// | settings | `apps/<app>/settings` |
/// | extension | `apps/<app>/extensions/<extension>/data` |
/// | group | `groups/<group>` |
/// | folder | `folders/<name>` |
public enum LogicalContainer: Hashable, Sendable {
  case bundle(LogicalName)
  case data(LogicalName)
  case settings(LogicalName)
  case `extension`(LogicalName, of: LogicalName)
  case group(LogicalName)
  case folder(LogicalName)

  /// The kind that policies go by.
  public var kind: ContainerKind {
    switch self {
    case .bundle: .bundle
    case .data: .data
    case .settings: .settings
    case .extension: .extension
    case .group: .group
    case .folder: .folder
    }
  }

  /// The app's name, of the kinds that belong to one.
  public var app: LogicalName? {
    switch self {
    case .bundle(let app), .data(let app), .settings(let app), .extension(_, let app): app
    case .group, .folder: nil
    }
  }

  /// The path of the container's root.
  public var prefix: ByteString {
    switch self {
    case .bundle(let app): Self.join("apps", app.component, "bundle")
    case .data(let app): Self.join("apps", app.component, "data")
    case .settings(let app): Self.join("apps", app.component, "settings")
    case .extension(let name, let app):
      Self.join("apps", app.component, "extensions", name.component, "data")
    case .group(let name): Self.join("groups", name.component)
    case .folder(let name): Self.join("folders", name.component)
    }
  }

  private static func join(_ parts: ByteString...) -> ByteString {
    ByteString(parts.map(\.bytes).joined(separator: [UInt8(ascii: "/")]))
  }

  /// Reads the container off a path's components; gives how many of them name it.
  init?(_ parts: [ByteString], length: inout Int) {
    guard parts.count >= 2, let first = LogicalName(component: parts[1]) else { return nil }
    length = 2
    switch parts[0] {
    case "groups": self = .group(first)
    case "folders": self = .folder(first)
    case "apps":
      guard parts.count >= 3 else { return nil }
      length = 3
      switch parts[2] {
      case "bundle": self = .bundle(first)
      case "data": self = .data(first)
      case "settings": self = .settings(first)
      case "extensions":
        length = 5
        guard parts.count >= 5, parts[4] == "data", let name = LogicalName(component: parts[3])
        else { return nil }
        self = .extension(name, of: first)
      default: return nil
      }
    default: return nil
    }
  }
}
