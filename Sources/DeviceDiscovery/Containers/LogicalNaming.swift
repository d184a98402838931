internal import Codecs
internal import SandboxModel
internal import SystemIO

/// Gives each container a logical name, unique in the device.
///
/// The container with the most reliable identification has the plain name
/// (`apps/com.example.app/data`); among equals, the one with the first directory name, so the
/// choice is stable as long as the containers exist. Every other container with the same identifier
/// has the directory name as a suffix (`apps/com.example.app~<UUID>/data`), an unidentified one has
/// the suffix alone (`apps/~<UUID>/data`). If a name would be longer than those in a snapshot, the
/// suffix is a digest of the path. An extension without a known app is named as if it were
/// its own app.
struct LogicalNaming {
  private var used: [LogicalContainer: ByteString] = [:]

  /// Returns the containers for drafts, sorted by logical path.
  static func containers(of drafts: [ContainerDraft], _ survey: inout Survey) -> [Container] {
    var naming = LogicalNaming()
    let ordered = drafts.sorted {
      ($0.identification, $0.uuid, $0.path) < ($1.identification, $1.uuid, $1.path)
    }
    return ordered.map { naming.container(of: $0, &survey) }
      .sorted { $0.logicalPrefix < $1.logicalPrefix }
  }

  private mutating func container(
    of draft: ContainerDraft, _ survey: inout Survey
  ) -> Container {
    let logical = Self.fitting(name(of: draft, &survey), draft)
    used[logical] = draft.path
    return Container(
      kind: draft.kind, identifier: draft.identifier, identification: draft.identification,
      owner: draft.owner, path: draft.path, absolutePath: draft.absolutePath,
      member: draft.member, uuid: draft.ownName, revision: draft.revision,
      inUseSince: draft.inUseSince,
      bundleDirectory: draft.bundle?.directory, logical: logical,
      isReadable: draft.isReadable, logicalPrefix: logical.prefix)
  }

  private func name(of draft: ContainerDraft, _ survey: inout Survey) -> LogicalContainer {
    if let identifier = draft.identifier {
      let plain = Self.logical(draft, LogicalName(identifier.bytes))
      guard let first = used[plain] else { return plain }
      survey.warn(
        .claimedTwice, at: draft.path,
        because:
          "it is the \(draft.kind.rawValue) container of '\(identifier)', and so is '\(first)'; "
          + "both are included")
    }
    let own = LogicalName(draft.identifier?.bytes ?? "", instance: draft.uuid)
    let named = Self.logical(draft, own)
    if used[named] == nil { return named }
    return Self.logical(
      draft, LogicalName(draft.identifier?.bytes ?? "", instance: draft.path))
  }

  /// Returns a name, or one with a digest if a component has more bytes than the name of an entry
  /// in a snapshot: without it, one such directory would prevent all backups.
  private static func fitting(
    _ logical: LogicalContainer, _ draft: ContainerDraft
  ) -> LogicalContainer {
    if logical.prefix.components.allSatisfy({ $0.count <= Int(UInt8.max) }) { return logical }
    // Single files have the path of their directory.
    let path = draft.member.map { draft.path.appending($0) } ?? draft.path
    let digest = ByteString(Blake2b.hash(Array(path.bytes)).hex)
    var short = draft
    if let purpose = draft.unitDirectory?.purpose { short.unitDirectory = (purpose, digest) }
    return Self.logical(short, LogicalName("", instance: digest))
  }

  private static func logical(_ draft: ContainerDraft, _ name: LogicalName) -> LogicalContainer {
    switch draft.kind {
    case .bundle: .bundle(name)
    case .data: .data(name)
    case .settings: .settings(name)
    case .revision: .revision(name)
    case .systemData: .systemData(name)
    case .systemRevision: .systemRevision(name)
    case .oldRevision: oldRevision(draft, of: name)
    case .group: .group(name)
    case .config, .state, .cache, .logs, .runtime: directory(draft, of: name)
    case .file: .file(draft.base ?? .data, of: name)
    case .folder: .folder(name)
    case .extension: .extension(name, of: draft.owner.map { LogicalName($0.bytes) } ?? name)
    }
  }

  /// Returns the name of a unit's directory, or of the app's directory of that kind.
  private static func directory(
    _ draft: ContainerDraft, of app: LogicalName
  ) -> LogicalContainer {
    if let (purpose, path) = draft.unitDirectory {
      return .directory(purpose, LogicalName(path), of: app)
    }
    return switch draft.kind {
    case .config: .config(app)
    case .state: .state(app)
    default: .cache(app)
    }
  }

  private static func oldRevision(
    _ draft: ContainerDraft, of app: LogicalName
  ) -> LogicalContainer {
    let number = LogicalName(draft.revision ?? draft.uuid)
    return draft.isOfSystem ? .oldSystemRevision(number, of: app) : .oldRevision(number, of: app)
  }
}

extension ContainerDraft {
  /// The name of the container's own directory, or nil if it is the identifier used by the layout.
  fileprivate var ownName: ByteString? {
    identification == .layout || member != nil || uuid == identifier?.bytes ? nil : uuid
  }
}

/// A container as found, before all containers of the device are known.
struct ContainerDraft {
  var kind: ContainerKind
  let path: ByteString
  let absolutePath: ByteString
  /// The name of its own directory.
  var uuid: ByteString
  var isReadable = true
  /// The only entry of the directory that belongs to the container.
  var member: ByteString?
  var metadata: ContainerMetadata?
  /// The identifier given by the container's location, if the layout names containers by
  /// identifier.
  var named: BundleIdentifier?
  /// The snap revision to which it belongs.
  var revision: ByteString?
  /// The time since which that revision is current, if a link records it.
  var inUseSince: Timestamp?
  /// Whether it belongs to the system instead of the user.
  var isOfSystem = false
  /// The base directory of a single file.
  var base: LogicalContainer.BaseDirectory?
  /// The purpose of a unit's directory, and its path below the base directory of that purpose.
  var unitDirectory: (purpose: LogicalContainer.UnitPurpose, path: ByteString)?
  /// The names of the property lists in `Library/Preferences`, without extension; read only if the
  /// metadata contains no identifier.
  var preferences: [ByteString] = []
  var bundle: BundleFacts?

  var identifier: BundleIdentifier?
  var identification = Container.Identification.none
  var owner: BundleIdentifier?
}
