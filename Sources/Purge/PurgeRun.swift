internal import ArchiveStore
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// A purge in progress.
struct PurgeRun {
  let plan: PurgePlan
  let options: PurgeOptions
  private(set) var report = PurgeReport()
  /// The number of deleted entries of each directory, by container.
  private var emptied: [Int: [Int32: Int32]] = [:]
  private var partyPlaces: [ByteString: Int] = [:]
  /// The parties that have started since the plan was made.
  private var running: Set<ByteString> = []
  private var isDone = false

  init(_ plan: PurgePlan, _ options: PurgeOptions) {
    self.plan = plan
    self.options = options
  }

  /// Purges a volume until its goal is met or no candidate is left.
  mutating func purge(volume number: Int) {
    let volume = plan.volumes[number]
    report.volumes.append(
      PurgeReport.Volume(path: volume.path, goal: volume.goal, before: volume.space.available))
    guard let term = volume.term, volume.goal != .some(0) else { return }
    settleLeftovers(on: volume.device)
    let isFree = plan.freeContainers()
    let all = plan.units.indices.filter { place in
      let unit = plan.units[place]
      return isFree[Int(unit.container)] && plan.device(of: unit) == volume.device
        && term.allows(unit, at: plan.request.now)
    }
    var (batch, next) = (volume.chosen.map(Int.init), volume.chosen.count)
    options.counters.expect(
      files: batch.reduce(0) { $0 + Int(plan.units[$1].files) }, bytes: volume.gain)
    while !batch.isEmpty, !isDone {
      purge(batch)
      batch = []
      var expected = report.volumes[number].freed
      while next < all.count, let goal = volume.goal, expected < goal {
        let place = all[next]
        next += 1
        if running.contains(plan.party(of: plan.units[place])) { continue }
        batch.append(place)
        expected += plan.units[place].bytes
      }
    }
  }

  /// Finishes the work of an interrupted or failed purge.
  private mutating func settleLeftovers(on device: UInt64) {
    for scan in plan.scan.containers {
      guard scan.entries.first?.status.identity.device == device,
        plan.request.only?.contains(scan.container.logicalPrefix) ?? true,
        let root = try? Directory.open(resolved: scan.container.absolutePath)
      else { continue }
      let left = PurgeStaging.settleLeftovers(in: root)
      report.failed += left.kept.map {
        PathRemark(
          path: $0, remark: "an interrupted purge moved it here, and it cannot be moved back")
      }
      if left.bytes > 0 {
        count(left.bytes, files: 0, units: 0, PurgePlan.party(of: scan.container))
      }
    }
  }

  /// Deletes units party by party and, for each party, directory by directory.
  private mutating func purge(_ batch: [Int]) {
    var byParty: [ByteString: [Int]] = [:]
    var order: [ByteString] = []
    for place in batch {
      let party = plan.party(of: plan.units[place])
      if byParty[party] == nil { order.append(party) }
      byParty[party, default: []].append(place)
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
        purge(container: Int(container), places: units[start..<end], of: party)
        start = end
      }
    }
  }

  private mutating func purge(
    container number: Int, places: ArraySlice<Int>, of party: ByteString
  ) {
    let scan = plan.scan.containers[number]
    do throws(SystemError) {
      let root = try Directory.open(resolved: scan.container.absolutePath)
      guard try root.status().identity == scan.entries[0].status.identity else {
        throw SystemError.replaced(scan.container.absolutePath)
      }
      var purge = ContainerPurge(
        plan, container: number, root: root,
        named: plan.scan.policy.namedDirectories(scan.container.kind), gone: emptied[number] ?? [:],
        counting: options.counters)
      remove(places, by: &purge, party)
      emptied[number] = purge.gone
    } catch {
      report.failed.append(PathRemark(path: scan.container.logicalPrefix, remark: error.reason))
    }
  }

  private mutating func remove(
    _ places: ArraySlice<Int>, by purge: inout ContainerPurge, _ party: ByteString
  ) {
    for (step, place) in places.enumerated() {
      if options.isStopping() { isDone = true }
      if isDone { break }
      let unit = plan.units[place]
      if step % 64 == 0 { options.counters.begin(plan.path(of: unit)) }
      take(purge.remove(unit), of: unit, party: party)
    }
    count(purge.removeEmptied(), files: 0, units: 0, party)
  }

  private mutating func take(
    _ outcome: ContainerPurge.Outcome, of unit: PurgeUnit, party: ByteString
  ) {
    // The files of a directory unit are counted as they are deleted.
    let wentByFiles =
      unit.kind == .folder && unit.terms.action != .truncate && !outcome.leavesAll
    if !wentByFiles { options.counters.didHandle(files: Int(unit.files)) }
    switch outcome {
    case .gone(let bytes):
      count(bytes, files: Int(unit.files), units: 1, party)
      options.counters.didHandle(bytes: bytes)
    case .changed(let remark):
      report.changed.append(PathRemark(path: plan.path(of: unit), remark: remark))
    case .failed(let error, let bytes):
      count(bytes, files: 0, units: 0, party)
      report.failed.append(PathRemark(path: plan.path(of: unit), remark: error.reason))
      options.counters.didFail()
      if error.endsEverything { isDone = true }
    }
  }

  private mutating func count(_ bytes: UInt64, files: Int, units: Int, _ party: ByteString) {
    let last = report.volumes.count - 1
    report.volumes[last].freed += bytes
    report.volumes[last].files += files
    report.volumes[last].units += units
    guard bytes > 0 || units > 0 else { return }
    let place = partyPlaces[party] ?? report.parties.count
    if place == report.parties.count {
      partyPlaces[party] = place
      report.parties.append(PurgeReport.Party(name: party))
    }
    report.parties[place].bytes += bytes
    report.parties[place].files += files
    report.parties[place].units += units
  }

  /// Returns the report, with the space that is now free.
  consuming func finished() -> PurgeReport {
    report.isInterrupted = options.isStopping()
    for number in report.volumes.indices {
      report.volumes[number].after = options.space(report.volumes[number].path)?.available
    }
    return report
  }
}
