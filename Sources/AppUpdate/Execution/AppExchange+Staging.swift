internal import AppPackages
internal import DeviceDiscovery
internal import DeviceScan
internal import DeviceTransaction
internal import Restore
internal import SandboxModel
internal import SystemIO

/// The staging of each container, and the steps that put it in place.
extension AppExchange {
  /// Stages everything. The package's entries come from `source`.
  ///
  /// - Returns: the entries and bytes written from the package.
  func stage<Source: PackageEntrySource & ~Copyable>(
    _ source: inout Source, isStopping: @escaping @Sendable () -> Bool
  ) throws -> AppPackage.Size {
    var written = AppPackage.Size()
    for (number, planned) in plan.containers.enumerated() {
      switch planned.action {
      case .keep, .copy, .restore: break
      case .move: try stageMove(planned, number)
      case .adopt: try stageAdoption(planned)
      case .remove: try stageRemoval(planned, number)
      case .replace, .make:
        if planned.logical.kind == .bundle, let package = plan.request.package, let to = planned.to
        {
          let target = try makeTarget(of: planned, at: to)
          var writer = try PackageWriter(into: target, isStopping: isStopping)
          try writer.write(&source, of: package)
          written = writer.written
          try stageBundle(planned, number)
        } else {
          try stageNew(planned)
        }
      }
    }
    return written
  }

  // MARK: - Bundles

  /// Returns the directory for the package's content: the bundle's container, which is created
  /// here, or the staging directory itself if bundles share a directory.
  private func makeTarget(of planned: PlannedContainer, at to: ByteString) throws -> Directory {
    let area = try area(around: to)
    guard plan.device.layout == .coreSimulator, let name = to.lastComponent else {
      return try area.staging.tree.duplicate()
    }
    try area.staging.tree.createDirectory(name, permissions: 0o755)
    let container = try area.staging.tree.directory(name)
    try container.setPermissions(0o755)
    try write(metadata(of: planned, at: to), into: container, like: nil)
    return container
  }

  private func stageBundle(_ planned: PlannedContainer, _ number: Int) throws {
    guard let to = planned.to, let name = to.lastComponent else { return }
    let area = try area(around: to)
    if let from = planned.from, let old = from.lastComponent {
      let before = try self.area(around: from)
      let isNamed = plan.device.layout == .coreSimulator
      let trash = try trash(for: isNamed ? planned.path.parent : planned.path, from: before)
      let kept = isNamed ? planned.path.lastComponent : nil
      // The new bundle follows with the next step.
      add(JournalStep(path: old, root: try root(before.directory), kept: trash, keptName: kept))
      record(0, of: number, under: trash, at: kept ?? "")
    }
    add(
      JournalStep(
        path: name, root: try root(area.directory), source: try root(area.staging.tree)))
  }

  // MARK: - Data

  private func stageMove(_ planned: PlannedContainer, _ number: Int) throws {
    guard let from = planned.from, let to = planned.to, let name = to.lastComponent,
      let scanned = planned.scanned, let root = plan.scan.containers[scanned].entries.first
    else { return }
    let area = try area(around: to)
    let parent = try self.root(area.directory)
    add(JournalStep(path: name, root: parent, source: parent, sourceName: from.lastComponent))
    let container = self.root(to, inode: root.status.identity.inode)
    try area.staging.tree.createDirectory(name, permissions: 0o700)
    let staged = try area.staging.tree.directory(name)
    try stageMetadata(planned, in: staged, container: container, at: area)
    try stageLinks(planned, in: staged, container: container, at: area)
    for drop in planned.drops {
      let trash = try trash(for: planned.path, from: area)
      if drop.leavesEmptyDirectory {
        let status = plan.scan.containers[scanned].entries[drop.entry].status
        try stageEmpty(drop, status, from: from, in: staged)
      }
      add(
        JournalStep(
          path: drop.inner, root: container,
          source: drop.leavesEmptyDirectory ? try self.root(staged) : nil, kept: trash))
      record(drop.entry, of: number, under: trash, at: drop.inner)
    }
  }

  private func stageMetadata(
    _ planned: PlannedContainer, in staged: borrowing Directory, container: Int,
    at area: StagedExchange.StagingArea
  ) throws {
    guard let to = planned.to, let from = planned.from else { return }
    let files = try metadata(of: planned, at: to)
    if files.isEmpty { return }
    let old = try Directory.open(resolved: from)
    for (name, bytes) in files {
      let status = try old.statusIfPresent(name)
      try write([name: bytes], into: staged, like: status)
      let kept = status == nil ? nil : try trash(for: planned.path, from: area)
      add(JournalStep(path: name, root: container, source: try root(staged), kept: kept))
    }
  }

  func stageLinks(
    _ planned: PlannedContainer, in staged: borrowing Directory, container: Int,
    at area: StagedExchange.StagingArea
  ) throws {
    if planned.links.isEmpty { return }
    var cursor = DirectoryCursor(root: try staged.duplicate())
    let trash = try trash(for: planned.path, from: area)
    for link in planned.links {
      let name = link.inner.lastComponent ?? ""
      try cursor.withDirectory(at: Array(link.inner.components.dropLast()), making: true) {
        directory throws(SystemError) in
        try directory.createLink(name, to: link.after)
        try? directory.setOwner(user: link.status.user, group: link.status.group, of: name)
        try directory.setModified(link.status.modified, of: name)
      }
      add(
        JournalStep(path: link.inner, root: container, source: try root(staged), kept: trash))
    }
  }

  /// Creates the directory that replaces a removed one, with its owner, mode and attributes.
  private func stageEmpty(
    _ drop: PlannedContainer.Drop, _ status: FileStatus, from container: ByteString,
    in staged: borrowing Directory
  ) throws(SystemError) {
    // Attributes that cannot be read remain with the directory in the trash.
    var old = DirectoryCursor(root: try Directory.open(resolved: container))
    let attributes = try? old.withDirectory(at: drop.inner.components) {
      directory throws(SystemError) in
      try directory.attributes.all()
    }
    var cursor = DirectoryCursor(root: try staged.duplicate())
    try cursor.withDirectory(at: drop.inner.components, making: true) {
      directory throws(SystemError) in
      try? directory.setOwner(user: status.user, group: status.group)
      // Only privileged users can set attributes of the system and the kernel.
      for (name, value) in attributes ?? [] { try? directory.attributes.set(name, to: value) }
      try directory.setPermissions(status.permissions)
    }
  }

  private func stageAdoption(_ planned: PlannedContainer) throws {
    guard let from = planned.from, let to = planned.to, let name = to.lastComponent else { return }
    let area = try area(around: to)
    let harbor = try Directory.open(resolved: from.parent)
    guard try TrashDirectory.canMove(from: area.staging.tree, to: harbor) else {
      throw OperationError(
        .failed, code: .otherVolume,
        plan.request.change.verb, subject: plan.request.app,
        reason: "its saved container "
          + "'\(from)' is on a different volume than '\(to)'",
        hint: "move it away, and restore its data after the installation")
    }
    add(
      JournalStep(
        path: name, root: try root(area.directory), source: try root(harbor),
        sourceName: from.lastComponent))
    let container = root(to, inode: try Directory.open(resolved: from).status().identity.inode)
    try area.staging.tree.createDirectory(name, permissions: 0o700)
    let staged = try area.staging.tree.directory(name)
    try stageMetadata(planned, in: staged, container: container, at: area)
    try stageLinks(planned, in: staged, container: container, at: area)
  }

  private func stageRemoval(_ planned: PlannedContainer, _ number: Int) throws {
    guard let from = planned.from, let name = from.lastComponent else { return }
    let area = try area(around: from)
    // A bundle that shares its directory with others keeps its name below the logical path.
    let isOwn = planned.scanned.map { plan.scan.containers[$0].container.member == nil } ?? true
    let trash = try trash(for: isOwn ? planned.path.parent : planned.path, from: area)
    let kept = isOwn ? planned.path.lastComponent : nil
    add(JournalStep(path: name, root: try root(area.directory), kept: trash, keptName: kept))
    record(0, of: number, under: trash, at: kept ?? "")
  }

  private func stageNew(_ planned: PlannedContainer) throws {
    guard let to = planned.to, let top = planned.top ?? planned.to, let name = top.lastComponent
    else { return }
    let area = try area(around: top)
    var cursor = DirectoryCursor(root: try area.staging.tree.duplicate())
    let home = [name] + to.components.dropFirst(top.components.count)
    func make(_ path: [ByteString]) throws(SystemError) {
      for depth in 1...path.count {
        try cursor.withDirectory(at: Array(path.prefix(depth)), making: true) {
          directory throws(SystemError) in try directory.setPermissions(0o755)
        }
      }
    }
    try make(home)
    if planned.logical.kind == .data {
      for inner in PlannedContainer.standardDirectories(plan.device.layout) {
        try make(home + inner.components)
      }
    }
    for link in planned.ownLinks {
      let above = home + link.components.dropLast()
      try make(above)
      try cursor.withDirectory(at: above) { directory throws(SystemError) in
        try directory.createLink(
          link.lastComponent ?? "", to: plan.device.root.appending(link))
      }
    }
    let staged = try cursor.withDirectory(at: home) { directory throws(SystemError) in
      try directory.duplicate()
    }
    try write(metadata(of: planned, at: to), into: staged, like: nil)
    add(
      JournalStep(
        path: name, root: try root(area.directory), source: try root(area.staging.tree)))
    for move in planned.moves {
      let above = home + move.inner.components.dropLast()
      try make(above)
      let inode = try cursor.withDirectory(at: above) { directory throws(SystemError) in
        try directory.status().identity.inode
      }
      add(
        JournalStep(
          path: move.inner.lastComponent ?? "",
          root: root(to.appending(move.inner.parent), inode: inode),
          source: try root(Directory.open(resolved: move.from.parent)),
          sourceName: move.from.lastComponent))
    }
  }

  // MARK: - Metadata

  private func metadata(
    of planned: PlannedContainer, at to: ByteString
  ) throws -> [ByteString: [UInt8]] {
    var stored: [UInt8]?
    if let from = planned.from, let old = try? Directory.open(resolved: from) {
      for name in ContainerMetadata.names(of: plan.device.layout) {
        stored = try? old.fileUntouched(name).readAll(limit: 1 << 20)
      }
    }
    return try ContainerMetadata.files(
      of: planned.logical.kind, identifier: planned.logical.name.identifier,
      uuid: to.lastComponent ?? "", layout: plan.device.layout, stored: stored,
      isSameDirectory: planned.from == to)
  }

  private func write(
    _ files: [ByteString: [UInt8]], into directory: borrowing Directory, like status: FileStatus?
  ) throws(SystemError) {
    for (name, bytes) in files {
      let file = try directory.create(name, permissions: 0o600)
      try file.write(bytes)
      if let status { try? file.setOwner(user: status.user, group: status.group) }
      try file.setPermissions(status?.permissions ?? 0o644)
      try file.close()
    }
  }
}
