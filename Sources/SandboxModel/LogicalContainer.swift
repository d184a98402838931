public import SystemIO

/// A container in a logical path, independent of its UUID and location on the device:
///
/// | container | prefix |
/// | --- | --- |
/// | bundle | `apps/<app>/bundle`, with `<Name>.app` below it |
/// | data | `apps/<app>/data` |
/// | settings | `apps/<app>/settings` |
/// | extension | `apps/<app>/extensions/<extension>/data` |
/// | revision | `apps/<app>/revision` |
/// | old revision | `apps/<app>/old-revisions/<number>` |
/// | system's data | `apps/<app>/system-data` |
/// | system's revision | `apps/<app>/system-revision` |
/// | old revision of the system's | `apps/<app>/old-system-revisions/<number>` |
/// | configuration, state, cache | `apps/<app>/config`, `apps/<app>/state`, `apps/<app>/cache` |
/// | single file | `apps/<app>/files/<base>`, with the file below it |
/// | directory of a unit | `apps/<unit>/directories/<purpose>/<name>` |
/// | group | `groups/<group>` |
/// | directory | `folders/<name>` |
public enum LogicalContainer: Hashable, Sendable {
  case bundle(LogicalName)
  case data(LogicalName)
  case settings(LogicalName)
  case revision(LogicalName)
  case systemData(LogicalName)
  case systemRevision(LogicalName)
  case oldRevision(LogicalName, of: LogicalName)
  case oldSystemRevision(LogicalName, of: LogicalName)
  case `extension`(LogicalName, of: LogicalName)
  case config(LogicalName)
  case state(LogicalName)
  case cache(LogicalName)
  case file(BaseDirectory, of: LogicalName)
  case directory(UnitPurpose, LogicalName, of: LogicalName)
  case group(LogicalName)
  case folder(LogicalName)

  /// The base directory of a single file (XDG Base Directory Specification).
  public enum BaseDirectory: String, CaseIterable, Sendable, Hashable { case config, data, state }

  /// The purpose of a unit's directory (systemd.exec(5)).
  public enum UnitPurpose: String, CaseIterable, Sendable, Hashable {
    case state, cache, logs, config, runtime

    /// The container kind used by policies.
    public var kind: ContainerKind {
      switch self {
      case .state: .state
      case .cache: .cache
      case .logs: .logs
      case .config: .config
      case .runtime: .runtime
      }
    }
  }

  /// The container kind used by policies.
  public var kind: ContainerKind {
    switch self {
    case .bundle: .bundle
    case .data: .data
    case .settings: .settings
    case .revision: .revision
    case .systemData: .systemData
    case .systemRevision: .systemRevision
    case .oldRevision, .oldSystemRevision: .oldRevision
    case .extension: .extension
    case .config: .config
    case .state: .state
    case .cache: .cache
    case .file: .file
    case .directory(let purpose, _, _): purpose.kind
    case .group: .group
    case .folder: .folder
    }
  }

  /// The app's name, or nil for kinds that belong to no single app.
  public var app: LogicalName? {
    switch self {
    case .bundle(let app), .data(let app), .settings(let app), .revision(let app),
      .systemData(let app), .systemRevision(let app), .oldRevision(_, let app),
      .oldSystemRevision(_, let app), .extension(_, let app), .config(let app), .state(let app),
      .cache(let app), .file(_, let app), .directory(_, _, let app):
      app
    case .group, .folder: nil
    }
  }

  /// The name that distinguishes it from other containers of its kind.
  public var name: LogicalName {
    switch self {
    case .bundle(let name), .data(let name), .settings(let name), .revision(let name),
      .systemData(let name), .systemRevision(let name), .oldRevision(let name, _),
      .oldSystemRevision(let name, _), .extension(let name, _), .config(let name),
      .state(let name), .cache(let name), .file(_, let name), .directory(_, let name, _),
      .group(let name), .folder(let name):
      name
    }
  }

  /// The UUID in its name; nil if the identifier alone is unique.
  public var instance: ByteString? { name.instance }

  /// The identifiers that a layout uses in its directory names.
  public var names: [LogicalName] {
    switch self {
    case .extension(let name, let app): [name, app]
    case .group(let name): [name]
    case .folder: []
    default: app.map { [$0] } ?? []
    }
  }

  /// The logical path of the container's root.
  public var prefix: ByteString {
    switch self {
    case .bundle(let app), .data(let app), .settings(let app), .revision(let app),
      .systemData(let app), .systemRevision(let app), .config(let app), .state(let app),
      .cache(let app):
      Self.join("apps", app.component, ByteString(kind.rawValue))
    case .file(let base, let app):
      Self.join("apps", app.component, Self.files, ByteString(base.rawValue))
    case .directory(let purpose, let name, let app):
      Self.join(
        "apps", app.component, Self.directories, ByteString(purpose.rawValue), name.component)
    case .oldRevision(let name, let app):
      Self.join("apps", app.component, Self.oldRevisions, name.component)
    case .oldSystemRevision(let name, let app):
      Self.join("apps", app.component, Self.oldSystemRevisions, name.component)
    case .extension(let name, let app):
      Self.join("apps", app.component, "extensions", name.component, "data")
    case .group(let name): Self.join("groups", name.component)
    case .folder(let name): Self.join("folders", name.component)
    }
  }

  private static let oldRevisions: ByteString = "old-revisions"
  private static let oldSystemRevisions: ByteString = "old-system-revisions"
  private static let files: ByteString = "files"
  private static let directories: ByteString = "directories"

  private static func join(_ parts: ByteString...) -> ByteString {
    ByteString(joining: parts)
  }

  private static func word<Word: RawRepresentable & CaseIterable>(
    _: Word.Type, _ component: ByteString?
  ) -> Word? where Word.RawValue == String {
    Word.allCases.first { ByteString($0.rawValue) == component }
  }

  /// Parses the container at the start of a path; sets `length` to the number of components used.
  init?(_ parts: [ByteString], length: inout Int) {
    guard parts.count >= 2, let first = LogicalName(component: parts[1]) else { return nil }
    length = 2
    switch parts[0] {
    case "groups": self = .group(first)
    case "folders": self = .folder(first)
    case "apps": self.init(of: first, parts.dropFirst(2), length: &length)
    default: return nil
    }
  }

  /// Parses an app's container from the components after the app's name.
  private init?(of app: LogicalName, _ parts: ArraySlice<ByteString>, length: inout Int) {
    guard let kind = parts.first else { return nil }
    length = 3
    switch kind {
    case "bundle": self = .bundle(app)
    case "data": self = .data(app)
    case "settings": self = .settings(app)
    case "revision": self = .revision(app)
    case "system-data": self = .systemData(app)
    case "system-revision": self = .systemRevision(app)
    case "config": self = .config(app)
    case "state": self = .state(app)
    case "cache": self = .cache(app)
    case Self.files:
      guard let base = Self.word(BaseDirectory.self, parts.dropFirst().first) else { return nil }
      length = 4
      self = .file(base, of: app)
    case Self.directories:
      guard let purpose = Self.word(UnitPurpose.self, parts.dropFirst().first),
        let name = parts.dropFirst(2).first.flatMap({ LogicalName(component: $0) })
      else { return nil }
      length = 5
      self = .directory(purpose, name, of: app)
    case Self.oldRevisions, Self.oldSystemRevisions, "extensions":
      guard let name = parts.dropFirst().first.flatMap({ LogicalName(component: $0) }) else {
        return nil
      }
      length = 4
      if kind == Self.oldRevisions {
        self = .oldRevision(name, of: app)
      } else if kind == Self.oldSystemRevisions {
        self = .oldSystemRevision(name, of: app)
      } else {
        length = 5
        guard parts.dropFirst(2).first == "data" else { return nil }
        self = .extension(name, of: app)
      }
    default: return nil
    }
  }
}
