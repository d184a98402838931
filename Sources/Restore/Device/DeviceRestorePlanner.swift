package import ArchiveStore
internal import Codecs
internal import DeviceDiscovery
internal import DeviceScan
internal import DeviceTransaction
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension DeviceRestorePlan {
  /// Plans a restore into a device. Planning changes nothing.
  ///
  /// - Throws: `OperationError`: `notFound` if the snapshot has nothing of the request, `failed` if
  ///   the device has another layout or the location of a container is taken; `StoreError`.
  package static func make(
    _ snapshot: StoredSnapshot, _ request: DeviceRestoreRequest, from reader: RepositoryReader
  ) throws -> DeviceRestorePlan {
    try DeviceRestorePlanner(snapshot, request, from: reader).plan()
  }
}

/// Assigns the requested parts of a snapshot to containers of a device.
struct DeviceRestorePlanner {
  let stored: StoredSnapshot
  let request: DeviceRestoreRequest
  let reader: RepositoryReader
  var snapshot: Snapshot { stored.snapshot }

  init(
    _ snapshot: StoredSnapshot, _ request: DeviceRestoreRequest, from reader: RepositoryReader
  ) {
    stored = snapshot
    self.request = request
    self.reader = reader
  }

  func plan() throws -> DeviceRestorePlan {
    try requireSameLayout()
    let held = try heldContainers()
    var plan = DeviceRestorePlan(
      snapshot: stored, request: request,
      present: DeviceScan.run(
        request.device, policy: request.policy,
        options: ScanOptions(destination: request.destination)
      ) { _ in false })
    let (wanted, leftGroups) = try items(of: held)
    plan.leftGroups = leftGroups
    let classes = ClassFilter(request.classes, snapshot)
    let restored = wanted.filter { classes.wants(classes.dataClass(of: $0.record.path)) }
    let finder = ContainerTargets(request, of: stored.id, restored: restored.map(\.logical))
    let targets = try targets(of: wanted, finder, leaving: &plan.left)
    plan.present = scan(targets)
    if plan.present.isInterrupted { throw OperationError.planningInterrupted }
    let anchors = try anchors(for: held, targets: targets.map(\.1), finder: finder)
    for (item, target) in targets {
      do {
        let part = try part(item, at: target, anchors: anchors, in: plan.present)
        try requireJournal(of: part)
        if isWithoutRequestedClass(part) { continue }
        plan.parts.append(part)
        plan.left += part.plan.mounts.map { mount in
          PathRemark(path: part.logical(mount.path), remark: mount.remark)
        }
      } catch let error as StoreError where error.kind == .damaged && targets.count > 1 {
        plan.lost.append(PathRemark(path: item.record.path, remark: error.reason))
        if !error.needsOlderKey { plan.isLostByDamage = true }
      }
    }
    let installs = FlatpakInstalls(
      for: targets.compactMap { $0.0.logical.app?.identifier }, snapshot, request.device)
    (plan.installCommands, plan.withoutCommand) = (installs.commands, installs.remarks)
    plan.excludedData = snapshot.excluded.filter { left in
      left.concerns(request.path) && wanted.contains { left.concerns($0.record.path) }
    }
    plan.incompleteData = snapshot.incompleteData(at: request.path).filter { lacking in
      isRequested(lacking.path, with: wanted)
    }
    return plan
  }

  /// Whether a container that does not exist would be created without content: the snapshot has
  /// no data of the requested classes in it.
  private func isWithoutRequestedClass(_ part: PlannedPart) -> Bool {
    let plan = part.plan
    guard !request.classes.isEmpty, part.action != .merge, plan.target.name != nil,
      plan.request.rules?.kind != .folder, plan.damaged.isEmpty, plan.blocked.isEmpty,
      plan.omitted.entries == 0
    else { return false }
    // Its own directory is not counted.
    return plan.creates.entries <= plan.request.rules?.generated.count ?? 0
  }

  /// The number of entries from which the size of a container's journal is determined: a smaller
  /// restore exceeds it only if its paths are thousands of bytes long, and the journal's writer
  /// refuses that before the first step.
  @TaskLocal static var countedEntries = 1 << 20
  /// The maximum size of the steps in a journal, in bytes.
  @TaskLocal static var journalLimit = JournalRecord.stepsLimit

  /// Returns the targets of the items, except those that are left, each with the reason.
  private func targets(
    of wanted: [Item], _ finder: ContainerTargets, leaving left: inout [PathRemark]
  ) throws -> [(Item, ContainerTargets.Target)] {
    var targets: [(Item, ContainerTargets.Target)] = []
    for item in wanted {
      let path = item.record.path
      guard let target = try finder.target(of: item.record, item.logical) else {
        left.append(PathRemark(path: path, remark: "this device has no location for its kind"))
        continue
      }
      if let reason = reasonToLeaveBundle(item, target) {
        left.append(PathRemark(path: path, remark: reason))
      } else {
        targets.append((item, target))
      }
    }
    return targets
  }

  /// Refuses a container with more steps than a journal can hold, before anything is staged.
  private func requireJournal(of part: PlannedPart) throws(OperationError) {
    guard part.plan.tree.entries.count + part.plan.removals.count >= Self.countedEntries else {
      return
    }
    let steps = PlacementSteps(
      part.plan, without: RestoreFindings(ProgressCounters()), hasTrash: true
    ).all
    if steps.fitInJournal(of: Self.journalLimit) { return }
    let path = ShellWord.argument(part.path) ?? "PATH"
    throw OperationError(
      .failed, code: .limitExceeded,
      "cannot restore '\(part.path)': its \(steps.count) changes do not fit in one journal",
      hint: "restore its directories one by one with 'SNAP:PATH'; "
        + "'sandboxctl ls SNAP:\(path)' lists them")
  }

  private func requireSameLayout() throws {
    guard snapshot.device.layout == request.device.layout.rawValue else {
      throw OperationError(
        .failed, code: .layoutMismatch,
        "restore to", subject: request.device.root,
        reason: "its layout is "
          + "\(request.device.layout.rawValue), but the snapshot's is \(snapshot.device.layout)",
        hint: "'--to DIR' restores into a plain directory")
    }
  }

  /// Returns the reason to keep an installed bundle; nil unless it has another version, which is
  /// never mixed with the stored one.
  private func reasonToLeaveBundle(
    _ item: Item, _ target: ContainerTargets.Target
  ) -> String? {
    guard case .bundle(let name) = item.logical, target.action == .merge, item.selection.isEmpty,
      !request.replacesBundles,
      let stored = snapshot.apps.first(where: { ByteString($0.identifier) == name.identifier }),
      let present = request.device.apps.first(where: { $0.identifier.bytes == name.identifier })
    else { return nil }
    let versions = (
      stored: [stored.version, stored.build], here: [present.version?.utf8, present.build?.utf8]
    )
    if versions.stored == versions.here { return nil }
    let shown = { (parts: [String?]) in parts.compactMap { $0 }.joined(separator: " build ") }
    return "the installed app is kept: it is \(shown(versions.here)), and the snapshot has "
      + shown(versions.stored)
  }

  // MARK: - The device

  /// Scans all containers of the affected apps and groups. If one path of one container is
  /// restored, only that path is scanned.
  private func scan(_ targets: [(item: Item, target: ContainerTargets.Target)])
    -> DeviceScan
  {
    let present = targets.compactMap(\.target.present)
    let apps = Set(present.compactMap(\.owner))
    let paths = Set(present.map(\.logicalPrefix))
    var options = ScanOptions(
      destination: request.destination, excluded: request.protected,
      isStopping: request.isStopping)
    if targets.count == 1, let path = targets.first?.item.selection, !path.isEmpty {
      (options.only, options.includesBelow) = (path, true)
    }
    let isOnePath = options.only != nil
    return DeviceScan.run(request.device, policy: request.policy, options: options) { container in
      paths.contains(container.logicalPrefix)
        || !isOnePath && container.owner.map { apps.contains($0) } ?? false
    }
  }

  /// Returns the locations for links: those of all containers of the snapshot that are or will be
  /// on the device.
  private func anchors(
    for held: [DeviceRecord.Container], targets: [ContainerTargets.Target], finder: ContainerTargets
  ) throws -> LinkAnchors {
    var paths = Dictionary(
      targets.map { ($0.record.path, $0.path) }, uniquingKeysWith: { first, _ in first })
    for record in held where paths[record.path] == nil {
      guard let logical = try? LogicalPath(record.path).location?.container else { continue }
      paths[record.path] = request.device.container(logical)?.absolutePath
    }
    return LinkAnchors(
      snapshot.device.containers.compactMap { record in
        guard let to = paths[record.path] else { return nil }
        return LinkAnchors.Anchor(
          uuid: record.uuid.map { ByteString($0) }, from: record.realPath, to: to)
      })
  }

  // MARK: - One container

  private func part(
    _ item: Item, at target: ContainerTargets.Target, anchors: LinkAnchors,
    in scan: DeviceScan
  ) throws -> PlannedPart {
    let isExchanged = isExchanged(item)
    let rules = try rules(for: item, at: target, anchors: anchors, in: scan)
    try RestoreTarget.refuse(target.path, in: request.protected)
    let location = location(of: target)
    var part = RestoreRequest(
      path: item.record.path, target: target.path,
      overwrite: location.name == nil ? isExchanged ? .always : request.overwrite : nil,
      deletes: isExchanged || request.deletes,
      protected: request.protected)
    part.classes = request.classes
    part.isStopping = request.isStopping
    part.deletesExcluded = request.deletesExcluded
    part.rules = rules
    let source = try reader.source(item.record.path, in: stored)
    return PlannedPart(
      path: item.record.path, action: target.action, target: target.path,
      plan: try RestorePlan.make(stored, part, source: source, at: location, from: reader))
  }

  /// Whether the files of a bundle are all replaced. Packagers may give all of them the same time,
  /// so those of two versions can have the same time and size.
  private func isExchanged(_ item: Item) -> Bool {
    item.logical.kind == .bundle && request.replacesBundles
  }

  /// Returns the rules for the part of an item.
  private func rules(
    for item: Item, at target: ContainerTargets.Target, anchors: LinkAnchors,
    in scan: DeviceScan
  ) throws -> RestoreRules {
    var rules = RestoreRules(
      policy: request.policy, kind: item.logical.kind, anchors: anchors,
      sparedBy: DeviceRestoreRequest.sparedBy)
    rules.app = target.present?.owner?.bytes.utf8 ?? item.logical.app?.identifier.utf8
    if case .group(let name) = item.logical { rules.group = name.identifier.utf8 }
    rules.selection = item.selection
    rules.comparesBytesAt = request.comparesBytes ? request.time : nil
    rules.asideSuffix = PlannedTree.asideSuffix(at: request.time)
    rules.emptied = emptied(in: item.record.path, rules)
    rules.obstacle = target.obstacle
    if item.logical.kind.isOneFile { adapt(&rules, toFile: item) }
    let isExchanged = isExchanged(item)
    if isExchanged || isWholeBundle(item) { rules.sparedBy = rules.sparedBy.withBundles }
    if isExchanged, let member = target.present?.member { adapt(&rules, toMember: member) }
    if let present = target.present {
      rules.present = scan.containers.first { $0.container.logicalPrefix == present.logicalPrefix }
    } else if target.action == .make {
      rules.generated = try generated(for: item, at: target, rules: rules)
    }
    return rules
  }

  /// Whether a container is a bundle from which the backup excluded nothing, even if the backup was
  /// to a bucket.
  private func isWholeBundle(_ item: Item) -> Bool {
    let path = item.record.path
    return item.logical.kind == .bundle
      && !snapshot.excluded.contains { $0.path.isWithin(path) || path.isWithin($0.path) }
  }

  /// Limits the rules to the one file of the app in a directory that it shares with other apps.
  private func adapt(_ rules: inout RestoreRules, toFile item: Item) {
    rules.hasOwnRoot = false
    if rules.selection.isEmpty, let name = item.logical.app?.identifier { rules.selection = name }
    rules.keepsNoOther = item.selection.isEmpty
  }

  /// Limits the rules to a bundle in a directory that it shares with other bundles.
  private func adapt(_ rules: inout RestoreRules, toMember member: ByteString) {
    rules.hasOwnRoot = false
    rules.selection = member
    rules.keepsNoOther = true
  }

  /// Returns the target for a container: an existing one is merged into, a new one is created in
  /// its parent directory, and one in the safe harbor is merged with the data already waiting
  /// there. Nothing is restored into an entry that is not treated as the container.
  private func location(of target: ContainerTargets.Target) -> RestoreTarget {
    if target.obstacle != nil {
      return RestoreTarget(directory: target.path.parent, name: nil, shownDepth: 0)
    }
    let isThere = (try? Directory.open(resolved: target.path)) != nil
    if isThere { return RestoreTarget(directory: target.path, name: nil, shownDepth: 0) }
    return RestoreTarget(
      directory: target.path.parent, name: target.path.lastComponent, shownDepth: 1)
  }

  /// Returns the excluded directories that the policy restores empty, by their parent directory.
  private func emptied(
    in container: ByteString, _ rules: RestoreRules
  ) -> [ByteString: [RestoreRules.EmptiedDirectory]] {
    var classifier = Classifier(rules.policy, scanStart: snapshot.time.seconds)
    var found: [ByteString: [RestoreRules.EmptiedDirectory]] = [:]
    var seen: Set<ByteString> = []
    for left in snapshot.excluded where left.path.isWithin(container) && left.path != container {
      let inner = left.path.components.dropFirst(container.components.count)
      let query = EntryQuery(
        rules.kind, app: rules.app, group: rules.group, path: inner.map { Array($0.bytes) },
        facts: EntryFacts(.directory))
      // The backup knew more about directories that rules match by siblings or contents.
      let restore = classifier.verdicts(query).keep.restore
      guard restore == .recreateEmpty || restore == .restore && left.directory != nil,
        let name = inner.last
      else { continue }
      let above = ByteString(joining: inner.dropLast())
      guard seen.insert(left.path).inserted else { continue }
      found[above, default: []].append(
        RestoreRules.EmptiedDirectory(name: name, entry: left.directory))
    }
    return found
  }

  /// Returns the metadata files of a new container, if the policy generates them.
  private func generated(
    for item: Item, at target: ContainerTargets.Target, rules: RestoreRules
  ) throws -> [ByteString: [UInt8]] {
    let layout = request.device.layout
    var classifier = Classifier(rules.policy)
    var stored: [UInt8]?
    for name in ContainerMetadata.names(of: layout) {
      let query = EntryQuery(
        rules.kind, app: rules.app, group: rules.group, path: [Array(name.bytes)])
      guard classifier.verdicts(query).keep.restore == .regenerate else { return [:] }
      let path = item.record.path.appending(name)
      // If the stored file is lost, a new one is generated without it.
      if let entry = try? reader.entry(at: path, in: snapshot.tree),
        case .file(let content) = entry.node, content.size <= 1 << 20
      {
        stored = try? reader.bytes(of: content)
      }
    }
    return try ContainerMetadata.files(
      of: item.logical.kind, identifier: item.logical.name.identifier,
      uuid: target.path.lastComponent ?? "", layout: layout, stored: stored,
      isSameDirectory: item.record.uuid.map { ByteString($0) } == target.path.lastComponent)
  }
}

extension OperationError {
  /// The error after a request to stop while a restore was planned.
  static let planningInterrupted = OperationError(
    .interrupted, "the restore was interrupted: the target is unchanged")
}

extension RepositoryReader {
  /// Returns the content of a small file.
  fileprivate func bytes(of content: Content) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Int(content.size))
    try readContent(content) { offset, span in
      for index in 0..<span.count where Int(offset) + index < bytes.count {
        bytes[Int(offset) + index] = span[index]
      }
    }
    return bytes
  }
}
