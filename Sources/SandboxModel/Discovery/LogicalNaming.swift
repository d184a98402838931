internal import SystemIO

/// Gives each container its logical name, unique in the device.
///
/// The container that is identified most surely has the plain name (`apps/com.example.app/data`),
/// among equals the one whose directory's name comes first, so that the choice does not change from
/// one look to the next while the containers stay. Each other that claims the same name has its
/// directory's name behind the identifier (`apps/com.example.app~<UUID>/data`), one that nothing
/// identifies only that (`apps/~<UUID>/data`). An extension of no known app is named as its own
/// app's.
struct LogicalNaming {
  private var used: [LogicalContainer: ByteString] = [:]

  /// Makes containers of drafts, sorted by logical path.
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
    let logical = name(of: draft, &survey)
    used[logical] = draft.path
    return Container(
      kind: draft.kind, identifier: draft.identifier, identification: draft.identification,
      owner: draft.owner, path: draft.path, absolutePath: draft.absolutePath,
      member: draft.member, uuid: draft.ownName, revision: draft.revision,
      inUseSince: draft.inUseSince, metadataUUID: draft.metadata?.uuid,
      bundleDirectory: draft.bundle?.directory, logical: logical,
      isReadable: draft.isReadable, logicalPrefix: logical.prefix)
  }

  private func name(of draft: ContainerDraft, _ survey: inout Survey) -> LogicalContainer {
    if let identifier = draft.identifier {
      let plain = Self.logical(draft, LogicalName(identifier.bytes))
      guard let first = used[plain] else { return plain }
      survey.warn(
        .claimedTwice, draft.path,
        "it claims to be the \(draft.kind.rawValue) container of '\(identifier)', as '\(first)' "
          + "does; both are kept")
    }
    let own = LogicalName(draft.identifier?.bytes ?? "", instance: draft.uuid)
    let named = Self.logical(draft, own)
    if used[named] == nil { return named }
    return Self.logical(
      draft, LogicalName(draft.identifier?.bytes ?? "", instance: draft.path))
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
    case .folder: .folder(name)
    case .extension: .extension(name, of: draft.owner.map { LogicalName($0.bytes) } ?? name)
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
  /// The name of its own directory, where that is not the identifier that the layout goes by.
  fileprivate var ownName: ByteString? {
    identification == .layout || member != nil || uuid == identifier?.bytes ? nil : uuid
  }
}
