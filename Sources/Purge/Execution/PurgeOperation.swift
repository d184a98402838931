internal import ArchiveStore
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
package import SystemIO

/// The execution of a purge plan.
///
/// The units that meet a volume's goal are taken from the plan in order and deleted app by app and
/// directory by directory. A unit that cannot be deleted after all (the app has started, a file was
/// used) is replaced by the next units in the order. All work uses directory handles that are
/// verified to be the planned directories, so nothing is deleted through a symbolic link or on
/// another mount. A unit is deleted completely or not at all, no matter when the program ends
/// (docs/purge.md). Not guaranteed: that an app that starts at the same moment finds all of its
/// files.
package struct PurgeOperation {
  private let plan: PurgePlan
  private let options: PurgeOptions

  /// Prepares the execution of a plan.
  package init(_ plan: PurgePlan, _ options: PurgeOptions = PurgeOptions()) {
    self.plan = plan
    self.options = options
  }

  /// Deletes the units. Returns the report, even after a request to stop.
  package func run() -> PurgeReport {
    var run = Run(plan, options)
    for number in plan.volumes.indices where !options.isStopping() { run.purge(volume: number) }
    return run.finished()
  }
}

extension PurgeOperation {
  /// A purge in progress.
  private struct Run {
    let plan: PurgePlan
    let options: PurgeOptions
    private(set) var report = PurgeReport()
    /// The number of deleted entries of each directory, by container.
    private var emptied: [Int: [Int32: Int32]] = [:]
    private var partyNumbers: [ByteString: Int] = [:]
    /// The parties that have started since the plan was made.
    private var running: Set<ByteString> = []
    /// The units that could not be deleted because their volume is full, by their indices in the
    /// plan: a directory is moved before it is deleted. They are tried again once the deletion of
    /// others has freed space.
    private var postponed: [Int: SystemError] = [:]
    /// The postponed units that are being tried for the last time.
    private var retried: [Int: SystemError] = [:]
    private var isDone = false

    init(_ plan: PurgePlan, _ options: PurgeOptions) {
      self.plan = plan
      self.options = options
    }

    /// Purges a volume until its goal is met or no candidate is left.
    mutating func purge(volume number: Int) {
      let volume = plan.volumes[number]
      report.volumes.append(
        PurgeReport.Volume(
          path: volume.path, goal: volume.goal,
          before: volume.space.isKnown ? volume.space.available : nil))
      guard let term = volume.term, volume.goal != .some(0) else { return }
      settleLeftovers(on: volume.device)
      let isFree = plan.freeContainers()
      let all = plan.units.indices.filter { index in
        let unit = plan.units[index]
        return isFree[Int(unit.container)] && plan.device(of: unit) == volume.device
          && term.allows(unit, at: plan.request.now)
      }
      var (batch, next) = (volume.chosen.map(Int.init), volume.chosen.count)
      options.counters.expect(
        files: batch.reduce(0) { $0 + Int(plan.units[$1].files) }, bytes: volume.gain)
      while !batch.isEmpty, !isDone {
        purge(batch)
        purgePostponed()
        batch = []
        var expected = report.volumes[number].freed
        while next < all.count, let goal = volume.goal, expected < goal {
          let index = all[next]
          next += 1
          if running.contains(plan.party(of: plan.units[index])) { continue }
          batch.append(index)
          expected += plan.units[index].bytes
        }
      }
    }

    /// Tries once more to delete the units that were postponed.
    private mutating func purgePostponed() {
      if postponed.isEmpty { return }
      (retried, postponed) = (postponed, [:])
      purge(retried.keys.sorted())
      retried = [:]
    }

    /// Finishes the work of an interrupted or failed purge.
    private mutating func settleLeftovers(on device: UInt64) {
      for scan in plan.scan.containers {
        guard scan.entries.first?.status.identity.device == device,
          plan.request.only?.contains(scan.container.logicalPrefix) ?? true,
          let root = try? Directory.open(resolved: scan.container.absolutePath)
        else { continue }
        let left = PurgeStaging.settleLeftovers(in: root)
        report.failed += left.failed
        if left.bytes > 0 {
          count(left.bytes, files: 0, units: 0, PurgePlan.party(of: scan.container))
        }
      }
    }

    /// Deletes units party by party and, for each party, directory by directory.
    private mutating func purge(_ batch: [Int]) {
      var byParty: [ByteString: [Int]] = [:]
      var order: [ByteString] = []
      for index in batch {
        let party = plan.party(of: plan.units[index])
        if byParty[party] == nil { order.append(party) }
        byParty[party, default: []].append(index)
      }
      for party in order {
        if options.isStopping() { isDone = true }
        if isDone { return }
        if let sign = options.sign(party, plan.scan) {
          running.insert(party)
          report.running.append(PathRemark(path: party, remark: sign))
          continue
        }
        let units = (byParty[party] ?? []).sorted { plan.units[$0].rank < plan.units[$1].rank }
        var start = 0
        while start < units.count, !isDone {
          let container = plan.units[units[start]].container
          let end =
            units[start...].firstIndex { plan.units[$0].container != container }
            ?? units.count
          purge(container: Int(container), units: units[start..<end], of: party)
          start = end
        }
      }
    }

    private mutating func purge(
      container number: Int, units: ArraySlice<Int>, of party: ByteString
    ) {
      let scan = plan.scan.containers[number]
      do throws(SystemError) {
        let root = try Directory.open(resolved: scan.container.absolutePath)
        guard try root.status().identity == scan.entries[0].status.identity else {
          throw SystemError.replaced(scan.container.absolutePath)
        }
        var purge = ContainerPurge(
          plan, container: number, root: root,
          named: plan.scan.policy.namedDirectories(scan.container.kind),
          deleted: emptied[number] ?? [:],
          counting: options.counters)
        remove(units, by: &purge, party)
        emptied[number] = purge.deleted
      } catch {
        report.failed.append(PathRemark(path: scan.container.logicalPrefix, remark: error.reason))
      }
    }

    private mutating func remove(
      _ units: ArraySlice<Int>, by purge: inout ContainerPurge, _ party: ByteString
    ) {
      for (step, index) in units.enumerated() {
        if options.isStopping() { isDone = true }
        if isDone { break }
        let unit = plan.units[index]
        if step % 64 == 0 { options.counters.begin(plan.path(of: unit)) }
        let outcome = purge.remove(unit)
        if case .failed(let error, 0) = outcome, error.isFull, retried[index] == nil {
          postponed[index] = error
        } else {
          record(outcome.following(retried[index]), of: unit, party: party)
        }
      }
      count(purge.removeEmptied(), files: 0, units: 0, party)
    }

    private mutating func record(
      _ outcome: ContainerPurge.Outcome, of unit: PurgeUnit, party: ByteString
    ) {
      // The files of a directory unit are counted as they are deleted.
      let wentByFiles =
        unit.kind == .directory && unit.terms.action != .truncate && !outcome.leavesAll
      if !wentByFiles { options.counters.didHandle(files: Int(unit.files)) }
      switch outcome {
      case .deleted(let bytes):
        count(bytes, files: Int(unit.files), units: 1, party)
        options.counters.didHandle(bytes: bytes)
      case .changed(let remark):
        report.changed.append(PathRemark(path: plan.path(of: unit), remark: remark))
      case .failed(let error, let bytes):
        recordFailure(error, of: unit, party: party, bytes: bytes, remark: error.reason)
      case .left(let error, let bytes, let path):
        recordFailure(
          error, of: unit, party: party, bytes: bytes,
          remark: "\(error.reason); the rest of it is in '\(path)': \(PurgeStaging.remedy(error))")
      }
    }

    private mutating func recordFailure(
      _ error: SystemError, of unit: PurgeUnit, party: ByteString, bytes: UInt64, remark: String
    ) {
      count(bytes, files: 0, units: 0, party)
      report.failed.append(PathRemark(path: plan.path(of: unit), remark: remark))
      options.counters.didFail()
      // Deleting a directory needs free space first; deleting other units does not.
      if error.endsEverything, !(unit.kind == .directory && error.isFull) { isDone = true }
    }

    private mutating func count(_ bytes: UInt64, files: Int, units: Int, _ party: ByteString) {
      let last = report.volumes.count - 1
      report.volumes[last].freed += bytes
      report.volumes[last].files += files
      report.volumes[last].units += units
      guard bytes > 0 || units > 0 else { return }
      let index = partyNumbers[party] ?? report.parties.count
      if index == report.parties.count {
        partyNumbers[party] = index
        report.parties.append(PurgeReport.Party(name: party))
      }
      report.parties[index].bytes += bytes
      report.parties[index].files += files
      report.parties[index].units += units
    }

    /// Returns the report, with the space that is now free.
    consuming func finished() -> PurgeReport {
      report.isInterrupted = options.isStopping()
      for number in report.volumes.indices {
        let space = options.space(report.volumes[number].path)
        report.volumes[number].after = space.flatMap { $0.isKnown ? $0.available : nil }
      }
      return report
    }
  }
}

/// The result of a purge.
package struct PurgeReport: Sendable {
  /// The results by volume, in the plan's order.
  package internal(set) var volumes: [Volume] = []
  /// The totals by party, in the order in which they were purged.
  package internal(set) var parties: [Party] = []
  /// The running parties, which were skipped, with the reason.
  package internal(set) var running: [PathRemark] = []
  /// The units that differ from the plan and stay, by their logical paths.
  package internal(set) var changed: [PathRemark] = []
  /// The units that could not be deleted.
  package internal(set) var failed: [PathRemark] = []
  package internal(set) var isInterrupted = false

  /// The totals of a party.
  package struct Party: Sendable, Hashable {
    package let name: ByteString
    package internal(set) var units = 0
    package internal(set) var files = 0
    package internal(set) var bytes: UInt64 = 0
  }

  /// The result for a volume.
  package struct Volume: Sendable, Hashable {
    /// The path of a container on the volume.
    package let path: ByteString
    /// The bytes that the volume gained.
    package internal(set) var freed: UInt64 = 0
    package internal(set) var units = 0
    package internal(set) var files = 0
    /// The goal in bytes; nil to delete everything that may be deleted.
    package let goal: UInt64?
    /// The free bytes before and after, as available to an unprivileged user; nil if they are not
    /// known.
    package let before: UInt64?
    package internal(set) var after: UInt64?

    /// The bytes missing from the goal.
    package var missing: UInt64 {
      guard let goal, goal > freed else { return 0 }
      return goal - freed
    }
  }

  /// The bytes that all volumes gained.
  package var freed: UInt64 { volumes.reduce(0) { $0 + $1.freed } }

  /// Whether every volume's goal was met.
  package var meetsGoal: Bool { volumes.allSatisfy { $0.missing == 0 } }
}
