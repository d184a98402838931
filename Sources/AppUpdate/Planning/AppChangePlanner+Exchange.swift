internal import AppPackages
internal import ArchiveStore
internal import DatabaseCapture
internal import DeviceDiscovery
internal import DeviceScan
internal import DeviceTransaction
internal import PolicyEngine
internal import Restore
internal import SandboxModel
internal import SystemIO

/// Install, update and reinstall: the package's content is put in place, and the data moves with it
/// or stays, according to the policy's `containers`.
extension AppChangePlanner {
  func planExchange(_ plan: inout AppChangePlan) {
    refuseUnfit(&plan)
    if let package = request.package { planBundle(package, &plan) }
    for number in scan.containers.indices where scan.containers[number].container.kind != .bundle {
      plan.containers.append(planned(number))
    }
    if request.package != nil {
      planMissing(&plan)
      recordWaiting(&plan)
    }
    anchorLinks(&plan)
    refuseImmovable(&plan)
    if plan.isSimulated { plan.commands = platformCommands }
  }

  // MARK: - Refusals

  private func refuseUnfit(_ plan: inout AppChangePlan) {
    let isThere = present?.isInstalled ?? false
    if request.change == .update, !isThere, !plan.isSimulated {
      plan.refuse(
        .notInstalled, "the device has no app '\(request.app)'",
        hint: "use 'sandboxctl install' to install it")
    }
    if request.change == .install, isThere, !plan.isSimulated {
      plan.refuse(
        .installed, "the app is already installed",
        hint: "use 'sandboxctl update' to install another version")
    }
    if request.change == .reinstall, !plan.isSimulated { refuseNotOffloaded(&plan) }
    guard let package = request.package, !plan.isSimulated else { return }
    let wanted: BundleShape = device.layout == .macOS ? .contents : .flat
    if package.shape != wanted {
      let (is_, has) = (package.shape == .contents ? "macOS" : "iOS", device.layout.rawValue)
      plan.refuse(
        .wrongPackage, "the package is built for \(is_), but the device has layout \(has)")
    }
    if package.identifier != request.app {
      plan.refuse(.wrongPackage, "the package contains '\(package.identifier)'")
    }
    refuseDowngrade(package, &plan)
    refuseExtensions(package, &plan)
  }

  /// Refuses a reinstallation unless the app's data is on the device without its bundle.
  private func refuseNotOffloaded(_ plan: inout AppChangePlan) {
    if present?.isInstalled ?? false {
      plan.refuse(
        .installed, "the app is installed; only an offloaded app can be reinstalled",
        hint: "use 'sandboxctl update' to install another version")
    } else if !scan.containers.contains(where: { $0.container.owner == request.app }) {
      plan.refuse(
        .notInstalled, "the device has no data of '\(request.app)'",
        hint: "use 'sandboxctl install' to install it")
    }
  }

  private func refuseDowngrade(_ package: AppPackage, _ plan: inout AppChangePlan) {
    guard let present, present.isInstalled, !request.allowsDowngrade else { return }
    let (old, new) = (AppVersion(present), AppVersion(package))
    guard new.isEarlier(than: old) else { return }
    plan.refuse(
      .downgrade, "the package has version \(new.text), the installed app \(old.text)",
      hint: "'--allow-downgrade' installs it anyway; the data of the newer version is kept")
  }

  /// Refuses a package in which an extension has a different build than the app (Information
  /// Property List Key Reference, CFBundleVersion; App Extension Programming Guide).
  private func refuseExtensions(_ package: AppPackage, _ plan: inout AppChangePlan) {
    for item in package.extensions where item.build != package.build {
      let (own, its) = (item.build ?? "none", package.build ?? "none")
      plan.refuse(
        .extensions,
        "its extension '\(item.identifier)' has build \(own), the app has build \(its)",
        hint: "build the app and its extensions together")
    }
  }

  // MARK: - Containers

  private func planBundle(_ package: AppPackage, _ plan: inout AppChangePlan) {
    let old = scan.containers.indices.first { number in
      let container = scan.containers[number].container
      return container.kind == .bundle && container.owner == request.app
    }
    let logical =
      old.map { scan.containers[$0].container.logical }
      ?? .bundle(LogicalName(request.app.bytes))
    guard let to = locationOfBundle(package, logical) else {
      plan.refuse(.location, "the device has no location for bundles")
      return
    }
    var planned = PlannedContainer(
      logical, old == nil ? .make : .replace,
      from: old.map { scan.containers[$0].container.home }, to: to)
    planned.scanned = old
    if let old { planned.paths = DataOutcomes(scan.containers[old], all: .replaced).paths }
    if to != planned.from, isOccupied(to) {
      plan.refuse(
        .location, "'\(to)' exists and belongs to no app that has data on the device",
        hint: "move it away; or start this app once, which creates its container, to update it")
    }
    plan.containers.append(planned)
  }

  private func locationOfBundle(
    _ package: AppPackage, _ logical: LogicalContainer
  ) -> ByteString? {
    if device.layout == .macOS {
      return device.root.appending("Applications").appending(package.bundleDirectory)
    }
    return newLocation(of: logical)?.path
  }

  /// Returns the location of a new container, or nil if the layout has no location of that kind or
  /// the name is not valid.
  private func newLocation(of logical: LogicalContainer) -> ContainerLocation? {
    try? device.location(forNew: logical, named: request.uuid(for: logical))
  }

  private func isOccupied(_ path: ByteString) -> Bool {
    guard let name = path.lastComponent, let parent = try? Directory.open(resolved: path.parent)
    else {
      return false
    }
    return (try? parent.statusIfPresent(name)) != nil
  }

  /// Returns the plan for a container with data.
  private func planned(_ number: Int) -> PlannedContainer {
    let found = scan.containers[number]
    let container = found.container
    if container.kind == .extension, isGone(container) { return removing(number) }
    switch terms(container.kind).update ?? .keep {
    case .keep, .replace: return keeping(number)
    case .copyRevision:
      var planned = keeping(number)
      planned = PlannedContainer(container.logical, .copy, from: container.home, to: nil)
      planned.scanned = number
      planned.paths = DataOutcomes(keeping: found).paths
      return planned
    case .newContainer: return moving(number)
    }
  }

  /// Whether the new version no longer has the extension and the platform therefore removes its
  /// container.
  private func isGone(_ container: Container) -> Bool {
    guard let package = request.package, let identifier = container.identifier,
      terms(.extension).update == .newContainer, present?.isInstalled ?? false
    else { return false }
    return !package.extensions.contains { $0.identifier == identifier }
  }

  private func moving(_ number: Int) -> PlannedContainer {
    let found = scan.containers[number]
    let container = found.container
    guard request.change == .update, let location = newLocation(of: container.logical) else {
      return keeping(number)
    }
    // Next to the present directory, since a rename cannot cross volumes.
    let to = container.absolutePath.parent.appending(location.name)
    var planned = PlannedContainer(
      container.logical, .move, from: container.absolutePath, to: to)
    planned.scanned = number
    let outcomes = DataOutcomes(
      found, isStrict: request.isStrict, replaced: ContainerMetadata.names(of: device.layout))
    planned.paths = outcomes.paths
    planned.drops = outcomes.drops
    return planned
  }

  /// Plans containers that the app does not have yet: those saved in the safe harbor, and those
  /// that the platform creates.
  private func planMissing(_ plan: inout AppChangePlan) {
    guard let package = request.package else { return }
    let app = LogicalName(request.app.bytes)
    let extensions = package.extensions.map {
      LogicalContainer.extension(LogicalName($0.identifier.bytes), of: app)
    }
    refuseUnreadable([.data(app)] + extensions, &plan)
    plan.containers += missing(.data(app), package, isMade: device.layout == .coreSimulator)
    for item in extensions { plan.containers += missing(item, package, isMade: false) }
    guard device.layout == .coreSimulator else { return }
    for group in package.groups where group.isKnown {
      plan.containers += missing(.group(LogicalName(group.group.bytes)), package, isMade: true)
    }
  }

  /// Adds a note for each container in the safe harbor that stays there because the app already has
  /// the container.
  private func recordWaiting(_ plan: inout AppChangePlan) {
    let waiting = SafeHarbor.all(on: device).filter { $0.app == request.app.bytes }
    for path in waiting.flatMap(\.containers)
    where scan.containers.contains(where: { $0.container.logicalPrefix == path }) {
      let saved = SafeHarbor.path(for: path, root: device.root)
      plan.notes.append(
        PathRemark(
          path: path,
          remark: "the app already has this container; the saved one stays at '\(saved)'"))
    }
  }

  private func missing(
    _ logical: LogicalContainer, _ package: AppPackage, isMade: Bool
  ) -> [PlannedContainer] {
    if device.container(logical) != nil { return [] }
    guard let location = newLocation(of: logical) else { return [] }
    let harbor = SafeHarbor.path(for: logical.prefix, root: device.root)
    if logical.app != nil, (try? Directory.open(resolved: harbor)) != nil {
      return [PlannedContainer(logical, .adopt, from: harbor, to: location.path)]
    }
    let migration = logical.kind == .data && device.layout == .macOS ? package.migration : nil
    guard isMade || migration != nil else { return [] }
    var planned = PlannedContainer(logical, .make, from: nil, to: location.path)
    planned.top = isOccupied(location.path.parent) ? location.path : location.path.parent
    if let migration { migrate(migration, &planned) }
    return [planned]
  }
}

// MARK: - Links

/// Links in containers that move to another directory. An absolute link that names such a container
/// by UUID or location is rewritten to the new location; others are reported and do not change.
extension AppChangePlanner {
  func anchorLinks(_ plan: inout AppChangePlan) {
    let anchors = LinkAnchors(
      plan.containers.compactMap { planned in
        guard let from = planned.from, let to = planned.to else { return nil }
        let uuid = planned.scanned.flatMap { scan.containers[$0].container.uuid }
        return LinkAnchors.Anchor(uuid: uuid, from: from, to: to)
      })
    for index in plan.containers.indices {
      let planned = plan.containers[index]
      if planned.action == .adopt { anchorSavedLinks(anchors, &plan.containers[index]) }
      guard planned.action == .move, planned.from != planned.to, let number = planned.scanned else {
        continue
      }
      anchorLinks(of: scan.containers[number], anchors, &plan.containers[index])
    }
    recordBrokenLinks(anchors, &plan)
  }

  /// Links in adopted data: a restore made links into its containers lead into the safe harbor.
  private func anchorSavedLinks(_ anchors: LinkAnchors, _ planned: inout PlannedContainer) {
    guard let from = planned.from, let saved = try? Directory.open(resolved: from) else { return }
    var walk = Walk(saved)
    var links = SavedLinks()
    walk.run(&links, state: ByteString(""))
    for (inner, before, status) in links.found.sorted(by: { $0.inner < $1.inner }) {
      guard case .own(let after) = anchors.target(of: before) else { continue }
      planned.links.append(
        PlannedContainer.Link(
          path: planned.path.appending(inner), before: before, after: after, inner: inner,
          status: status))
    }
  }

  /// The links in a directory that no scan has read.
  private struct SavedLinks: WalkVisitor {
    var found: [(inner: ByteString, target: ByteString, status: FileStatus)] = []

    mutating func visit(
      _ batch: borrowing WalkBatch, of directory: borrowing WalkDirectory, state: ByteString,
      descent: inout WalkDescent<ByteString>
    ) {
      for (index, entry) in batch.entries.enumerated() {
        let name = batch.name(entry)
        if entry.status.kind == .directory {
          descent.enter(index, with: state.appending(name))
        } else if entry.status.kind == .symlink,
          let target = try? directory.directory.target(of: name)
        {
          found.append((state.appending(name), target, entry.status))
        }
      }
    }

    mutating func failed(_ problem: WalkProblem, state: ByteString) {}
  }

  private func anchorLinks(
    of found: ContainerScan, _ anchors: LinkAnchors, _ planned: inout PlannedContainer
  ) {
    let dropped = planned.drops.map(\.inner)
    guard let root = try? Directory.open(resolved: found.container.absolutePath) else { return }
    var cursor = DirectoryCursor(root: root)
    for (index, entry) in found.entries.enumerated() where entry.status.kind == .symlink {
      let inner = found.path(index)
      if dropped.contains(where: { inner.isWithin($0) }) { continue }
      let before = try? cursor.withDirectory(at: inner.components.dropLast()) {
        directory throws(SystemError) in try directory.target(of: inner.lastComponent ?? "")
      }
      guard let before else { continue }
      let path = found.logicalPath(index)
      switch anchors.target(of: before) {
      case .unchanged: break
      case .own(let after):
        planned.links.append(
          PlannedContainer.Link(
            path: path, before: before, after: after, inner: inner, status: entry.status))
      case .foreign:
        planned.foreignLinks.append(PathRemark(path: path, remark: "it points to '\(before)'"))
      }
    }
    planned.links.sort { $0.path < $1.path }
    planned.foreignLinks.sort { $0.path < $1.path }
  }
}

// MARK: - Migration

/// The migration of data into a new container, by moves and links, as the app's
/// container-migration.plist describes (App Sandbox Design Guide, Migrating an App to a Sandbox).
extension AppChangePlanner {
  func migrate(_ migration: ContainerMigration, _ planned: inout PlannedContainer) {
    var occupied: Set<ByteString> = Set(PlannedContainer.standardDirectories(device.layout))
    for move in migration.moves {
      guard let status = outside(move.source, &planned) else { continue }
      if occupied.contains(where: { $0.isWithin(move.destination) }) {
        record(move.source, "another entry is placed at '\(move.destination)'", in: &planned)
        continue
      }
      occupied.insert(move.destination)
      planned.moves.append(
        PlannedContainer.Move(
          from: device.root.appending(move.source), inner: move.destination, status: status))
      if status.kind == .file { moveLogs(of: move, in: migration, &occupied, &planned) }
    }
    for link in migration.links where outside(link, &planned) != nil {
      planned.ownLinks.append(link)
    }
  }

  /// Moves the log and the journal of a file with it, unless the list has them: a database without
  /// its log lacks transactions or is damaged.
  private func moveLogs(
    of move: ContainerMigration.Move, in migration: ContainerMigration,
    _ occupied: inout Set<ByteString>, _ planned: inout PlannedContainer
  ) {
    for suffix in [DatabaseMember.log, .journal].map({ ByteString($0.suffix) }) {
      let source = move.source.concatenating(suffix)
      let inner = move.destination.concatenating(suffix)
      guard !migration.moves.contains(where: { $0.source == source || $0.destination == inner }),
        let status = outside(source, &planned), status.kind == .file
      else { continue }
      occupied.insert(inner)
      planned.moves.append(
        PlannedContainer.Move(from: device.root.appending(source), inner: inner, status: status))
    }
  }

  /// Returns the status of a path in the home directory if a rename can move it, or nil. Only a
  /// path that exists and cannot be moved is reported.
  private func outside(_ path: ByteString, _ planned: inout PlannedContainer) -> FileStatus? {
    do throws(SystemError) {
      var cursor = DirectoryCursor(root: try Directory.open(resolved: device.root))
      let parts = path.components
      for depth in parts.indices {
        let found = try cursor.withDirectory(at: Array(parts[..<depth])) {
          directory throws(SystemError) in
          try directory.statusIfPresent(parts[depth])
        }
        guard let found else { return nil }
        if found.isMountPoint {
          record(path, "another volume is mounted there", in: &planned)
          return nil
        }
        if depth == parts.count - 1 { return found }
      }
    } catch {
      if !error.isMissing { record(path, error.reason, in: &planned) }
    }
    return nil
  }

  private func record(_ path: ByteString, _ reason: String, in planned: inout PlannedContainer) {
    planned.notMoved.append(
      PathRemark(path: device.root.appending(path), remark: "it was not moved: \(reason)"))
  }
}
