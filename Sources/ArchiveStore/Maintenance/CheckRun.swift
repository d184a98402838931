internal import Codecs
internal import SystemIO

extension RepositoryCheck {
  /// One check of a repository, which is repeated if the repository changes meanwhile.
  struct Run {
    let inventory: RepositoryInventory
    private(set) var report = Report()
    let check: RepositoryCheck
    let storage: RepositoryStorage
    private(set) var damage: [Finding] = []
    /// The errors of the objects that this user may not read, or that the store failed to send, by
    /// their paths. They do not count as damage.
    private(set) var refused: [ObjectPath: StoreError] = [:]
    private(set) var snapshots: [StoredSnapshot] = []
    /// The errors of snapshots that cannot be read.
    private(set) var unreadableSnapshots: [StoreError] = []
    private(set) var index = CheckedIndex([])
    private(set) var condemnedPacks: Set<Digest> = []
    /// The records of earlier checks.
    let recorded: DamageRecords
    /// Existing packs that cannot be relied on.
    private(set) var damagedPacks: [Digest: DamageRecords.Record.Pack] = [:]
    /// Packs that were read and are intact.
    private(set) var soundPacks: Set<Digest> = []
    /// The first pack that cannot be read for a reason other than damage: its content may be
    /// intact.
    private(set) var unread: (pack: Digest, reason: String, hint: String?)?
    /// Packs with a damaged tree.
    private var suspects: Set<Digest> = []
    /// Missing directories that nothing needs.
    private(set) var emptyDirectories: [ObjectPath] = []
    /// Whether everything that snapshots need can be restored.
    private(set) var isWhole = true
    /// Whether it is unknown if something can be restored, because it is in no index and may be in
    /// a pack that this user may not read, or because its tree or list is in such a pack.
    private var hasUnindexed = false
    private var hasRefused = false
    /// The progress of partial checks after this one; nil if it is not recorded.
    private(set) var round: CheckRound?

    var hasDamage: Bool { !damage.isEmpty || !isWhole }

    /// Checks the repository.
    ///
    /// - Parameter own: the name of the check's own lease, which is not reported.
    init(_ check: RepositoryCheck, besides own: ByteString?) throws {
      self.check = check
      storage = check.repository.storage
      inventory = try RepositoryInventory(storage, besides: own)
      recorded = try DamageRecords(storage)
      report.packs = inventory.packs.count
      report.storedBytes = inventory.packs.values.clampedSum
      try loadSnapshots()
      try loadIndexes()
      try loadCondemned()
      try recordMissingDirectories()
      try recordLostPinned()
      for (path, error) in recorded.faults { try record(path, error) }
      try checkPacksAgainstIndex()
      try readContents()
    }

    /// With an older key file there is no remedy: objects that it does not open are intact.
    private mutating func record(_ object: String, _ reason: String, hint: String?) {
      let isCertain = check.repository.writeRefusal == nil
      damage.append(.damage(object: object, reason: reason, hint: isCertain ? hint : nil))
    }

    private mutating func record(_ path: ObjectPath, _ error: StoreError) throws(StoreError) {
      if [.leaseLost, .keyRequired, .interrupted].contains(error.code) { throw error }
      if error.isRefused || error.isStoreFailure {
        try storage.requireAnswer(after: error)
        if !error.isRefused || error.needsOlderKey { report.hasOtherReasons = true }
        refused[path] = refused[path] ?? error
        return
      }
      record("\(path)", error.reason, hint: DamageRemedy.remedy(for: path, error))
    }

    /// Reports missing directories as damage, unless they were empty.
    private mutating func recordMissingDirectories() throws(StoreError) {
      for directory in inventory.obstructedDirectories {
        record(
          "\(directory)", "it is not a directory", hint: DamageRemedy.obstructedDirectory)
      }
      let needs = RepositoryListing.DirectoryNeeds(
        hasSnapshots: !inventory.snapshots.isEmpty, hasIndexes: !inventory.indexes.isEmpty,
        hasPacksAlone: inventory.hasPacksAlone,
        packDirectories: Set(index.packIDs.map { storage.layout.pack($0).directory }))
      let lost = try lostSnapshots()
      if let lost, !inventory.missingDirectories.contains(RepositoryLayout.snapshots) {
        record("\(RepositoryLayout.snapshots)", lost, hint: DamageRemedy.lostSnapshots)
      }
      for directory in inventory.missingDirectories {
        if directory == RepositoryLayout.snapshots, let lost {
          record(
            "\(directory)", "the directory is missing: \(lost)", hint: needs.hint(for: directory))
        } else if let reason = needs.loss(of: directory) {
          record("\(directory)", reason, hint: needs.hint(for: directory))
        } else {
          emptyDirectories.append(directory)
        }
      }
      // If all are missing, their parent directory is missing, and one finding covers them.
      let packDirectories = inventory.missingDirectories.count {
        $0.directory == RepositoryLayout.packs
      }
      guard packDirectories == RepositoryLayout.packDirectories.count,
        let reason = needs.loss(of: RepositoryLayout.packs)
      else { return }
      record(
        "\(RepositoryLayout.packs)", reason, hint: needs.hint(for: RepositoryLayout.packs))
      emptyDirectories.removeAll { $0.directory == RepositoryLayout.packs }
    }

    /// Reports pinned snapshots that do not exist: no program removes one.
    private mutating func recordLostPinned() throws(StoreError) {
      let pinned = inventory.pins.compactMap { RepositoryLayout.id($0, suffix: "") }
      if Set(pinned).isSubset(of: inventory.snapshots) { return }
      for id in try check.repository.lostPinned().sorted() {
        record(
          "\(storage.layout.snapshot(id))", "it is pinned and does not exist",
          hint: DamageRemedy.pinnedSnapshot)
      }
    }

    private mutating func loadSnapshots() throws(StoreError) {
      let read = { @Sendable [check] (id: SnapshotID) throws(StoreError) -> StoredSnapshot in
        try check.checkNotStopped()
        return try check.repository.snapshot(id)
      }
      try storage.forEach(inventory.snapshots, read) { id, result throws(StoreError) in
        do throws(StoreError) {
          snapshots.append(try result.get())
        } catch {
          try record(storage.layout.snapshot(id), error)
          if error.code != .missing { unreadableSnapshots.append(error) }
        }
      }
      snapshots.sort { ($0.snapshot.time, $0.id) < ($1.snapshot.time, $1.id) }
      report.snapshots = snapshots.count
      report.signed = snapshots.count { $0.signature.signer != nil }
    }

    private mutating func loadIndexes() throws(StoreError) {
      var objects: [IndexObject] = []
      // On another host one listing costs less than a request for the size of each object.
      let isRemote = inventory.indexes.count > 1 && storage.isOnAnotherHost
      let sizes = isRemote ? try? RepositoryListing.indexesWithSizes(storage).sizes : nil
      let load = { @Sendable [check, storage] (id: Digest) throws(StoreError) -> IndexObject in
        try check.checkNotStopped()
        return try IndexObject.load(id, from: storage, listed: sizes?[storage.layout.index(id)])
      }
      try storage.forEach(inventory.indexes, load) { id, result throws(StoreError) in
        do throws(StoreError) { objects.append(try result.get()) } catch {
          try record(storage.layout.index(id), error)
        }
      }
      index = CheckedIndex(objects)
      report.indexes = objects.count
    }

    /// Loads the lists of condemned packs. A list that no longer exists was removed by a prune.
    private mutating func loadCondemned() throws(StoreError) {
      for id in inventory.condemned {
        let path = CondemnedObject.path(id)
        do {
          condemnedPacks.formUnion(try CondemnedObject.load(id, from: storage).packs)
        } catch {
          switch error.code {
          case .missing: continue
          case .damaged:
            record("\(path)", error.reason + "; the next backup or prune removes it", hint: nil)
          default: try record(path, error)
          }
        }
      }
    }

    /// Checks that each pack in the index exists and has the recorded size. A condemned pack may be
    /// missing: the prune that removed it was interrupted before it changed the index.
    private mutating func checkPacksAgainstIndex() throws(StoreError) {
      for pack in index.packIDs.sorted() {
        let path = "\(storage.layout.pack(pack))"
        let tables = index.tables(of: pack)
        guard let size = inventory.packs[pack] else {
          index.lostPacks.insert(pack)
          if !condemnedPacks.contains(pack) {
            record(path, "it is missing", hint: DamageRemedy.pack)
          }
          continue
        }
        if tables.count > 1 {
          record(
            path, "index objects disagree about its frames", hint: DamageRemedy.contradictedPack)
        }
        guard let wanted = tables.first?.size, wanted != size else { continue }
        record(
          path, "it has \(size) bytes instead of the \(wanted) in the index",
          hint: DamageRemedy.pack)
        recordDamaged(pack, size)
        do throws(StoreError) {
          markCopiesLost(of: pack, behind: try storage.contentLimit(ofPack: pack, stored: size))
        } catch {
          guard error.isRefused else { throw error }
          recordUnread(pack, error)
        }
      }
    }

    /// Reports a pack that this user may not read, or that the store failed to send.
    private mutating func recordUnread(_ pack: Digest, _ error: StoreError) {
      if !error.isRefused || error.needsOlderKey { report.hasOtherReasons = true }
      let path = storage.layout.pack(pack)
      refused[path] = refused[path] ?? error
      unread = unread ?? (pack, error.reason, error.hint)
    }

    private mutating func recordDamaged(_ pack: Digest, _ size: UInt64) {
      damagedPacks[pack] = .init(
        id: pack, size: size, expected: index.tables(of: pack).first?.size)
    }

    /// Marks the blobs in frames beyond the end of a pack's content as lost.
    private mutating func markCopiesLost(of pack: Digest, behind size: UInt64) {
      guard let frames = index.tables(of: pack).first?.frames else { return }
      for record in index.records(of: pack) {
        let frame = frames[Int(record.frame)]
        if frame.offset + UInt64(frame.stored) > size {
          index.lostCopies.insert(.init(blob: record.id, pack: pack))
        }
      }
    }

    /// Reads trees on this thread and pack data on others: the requested packs and those that an
    /// earlier check found damaged. Then it reads the packs with damaged trees.
    private mutating func readContents() throws {
      var packs = chosenPacks()
      for pack in recorded.packs.keys where damagedPacks[pack] == nil {
        packs[pack] = inventory.packs[pack]
      }
      let data = try PackCheck.Group(of: packs, index, check)
      do {
        try readTrees()
      } catch {
        // Called only to wait for its threads: this error comes first.
        _ = try? data.finish()
        throw error
      }
      var verdicts = try data.finish()
      let more = inventory.packs.filter { suspects.contains($0.key) && packs[$0.key] == nil }
      verdicts += try PackCheck.Group(of: more, index, check).finish()
      try check.checkNotStopped()
      for verdict in verdicts { add(verdict) }
      if !isWhole { try rescue() }
    }

    /// The packs to read. If the progress of partial checks cannot be written, each check would
    /// read the same packs; random ones cover all packs over time.
    private mutating func chosenPacks() -> [Digest: UInt64] {
      guard case .fraction(let fraction) = check.reading, let rounds = check.rounds else {
        return PackCheck.Group.chosen(of: inventory.packs, by: check.reading)
      }
      var round = rounds.load()
      guard rounds.save(round) else {
        return PackCheck.Group.chosen(of: inventory.packs, by: check.reading)
      }
      defer { self.round = round }
      return round.next(fraction, of: inventory.packs)
    }

    private mutating func readTrees() throws {
      let reader = try index.reader(of: check.repository)
      reader.continueWithoutRefused()
      var trees = TreeCheck(reader, index: index, for: check)
      for stored in snapshots { try trees.check(stored.snapshot.tree) }
      for (pack, error) in reader.refusedPacks ?? [:] { recordUnread(pack, error) }
      (report.trees, report.entries, isWhole) = (trees.trees, trees.entries, trees.isWhole)
      (hasUnindexed, hasRefused) = (trees.hasUnindexed, trees.hasRefused)
      suspects.formUnion(reader.damagedPacks.filter { damagedPacks[$0] == nil })
    }

    /// Looks for lost blobs in packs that no intact index object names, as a reader does.
    private mutating func rescue() throws {
      let unnamed = inventory.packs.filter { !index.names($0.key) }
      if unnamed.isEmpty { return }
      let rescue = try PackRescue(
        of: unnamed, in: storage, checkCancellation: check.checkNotStopped)
      for (pack, error) in rescue.faults {
        if error.isRefused {
          recordUnread(pack, error)
          index.refusal = index.refusal ?? error
          continue
        }
        record("\(storage.layout.pack(pack))", error.reason, hint: DamageRemedy.pack)
        if error.kind != .damaged { unread = unread ?? (pack, error.reason, error.hint) }
      }
      index.rescued = rescue.objects
      try readTrees()
      if index.isRescueNeeded, report.indexes == inventory.indexes.count {
        record("index", StoreError.incompleteIndex().reason, hint: StoreError.indexHint)
      }
    }

    private mutating func add(_ verdict: PackCheck.Verdict) {
      if let error = verdict.unread {
        recordUnread(verdict.pack, error)
      } else {
        report.packsRead += 1
      }
      report.bytesRead += verdict.bytes
      report.blobsRead += verdict.blobs
      if !verdict.faults.isEmpty {
        record(
          "\(storage.layout.pack(verdict.pack))", verdict.faults.joined(separator: "; "),
          hint: DamageRemedy.pack)
        if verdict.isComplete {
          recordDamaged(verdict.pack, inventory.packs[verdict.pack] ?? 0)
        } else {
          unread = unread ?? (verdict.pack, verdict.faults[0], nil)
        }
      } else if verdict.unread == nil, damagedPacks[verdict.pack] == nil {
        soundPacks.insert(verdict.pack)
      }
      for blob in verdict.lost {
        isWhole = false
        index.lostCopies.insert(.init(blob: blob, pack: verdict.pack))
      }
    }
  }
}

extension RepositoryCheck.Run {
  /// Passes the findings to `body`: damage, affected paths, remarks.
  func forEachFinding(_ body: (RepositoryCheck.Finding) throws -> Void) throws {
    for finding in damage { try body(finding) }
    let paths = refused.keys.sorted { $0.components.lexicographicallyPrecedes($1.components) }
    for path in paths {
      guard let error = refused[path] else { continue }
      try body(.unreadable(object: "\(path)", reason: error.reason, hint: error.hint))
    }
    for stored in snapshots {
      guard let refusal = check.repository.refusal(of: stored) else { continue }
      try body(.untrusted(snapshot: stored.id, reason: refusal.reason))
    }
    if !isWhole || hasUnindexed || hasRefused && hasDamage { try reportCosts(body) }
    for (object, reason) in try remarks() { try body(.remark(object: object, reason: reason)) }
  }

  /// Walks all snapshots together and reports each path that cannot be restored, or for which that
  /// is unknown.
  private func reportCosts(_ body: (RepositoryCheck.Finding) throws -> Void) throws {
    let reader = try index.reader(of: check.repository)
    reader.continueWithoutRefused()
    let roots = snapshots.map(\.snapshot.tree)
    try reader.walkTogether(roots) { path, found in
      try check.checkNotStopped()
      switch found {
      case .damage(let error, let trees):
        if let finding = finding(at: path, CheckedIndex.Fault(error), trees: trees) {
          try body(finding)
        }
      case .entries(let entries, _):
        for found in entries {
          let fault = try RepositoryCheck.TreeCheck.fault(of: found.entry, reader, index)
          if let fault, let finding = finding(at: path, fault, trees: found.trees) {
            try body(finding)
          }
        }
      }
      return .enter
    }
  }

  /// Returns the finding for a fault. Content of a tree or a list that this user may not read is
  /// assumed to exist, if nothing is damaged or missing.
  private func finding(
    at path: ByteString, _ fault: CheckedIndex.Fault, trees: [Int]
  ) -> RepositoryCheck.Finding? {
    let ids = trees.map { snapshots[$0].id }
    switch fault {
    case .lost(let reason): return .cost(path: path, snapshots: ids, reason: reason)
    case .unindexed(let reason): return .uncertain(path: path, snapshots: ids, reason: reason)
    case .refused(let reason):
      return hasDamage ? .uncertain(path: path, snapshots: ids, reason: reason) : nil
    }
  }
}
