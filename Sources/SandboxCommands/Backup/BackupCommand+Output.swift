internal import ArchiveStore
internal import Backup
internal import Codecs
internal import DeviceScan
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

extension BackupCommand {
  /// The text output of `backup`: the device, the kept and excluded data of each app, the stored
  /// size, and problems.
  struct Text {
    private let plan: BackupPlan
    private let report: BackupReport?
    private let owners: ListExcerpt<BackupPlan.OwnerSummary>
    private let exclusions: BackupPlan.OwnerExclusions
    private let realPaths: RealPaths
    private let listsAll: Bool

    init(_ plan: BackupPlan, _ report: BackupReport?, listsAll: Bool) {
      self.plan = plan
      self.report = report
      self.listsAll = listsAll
      realPaths = RealPaths(plan.device)
      exclusions = BackupPlan.OwnerExclusions(plan)
      owners = ListExcerpt(plan.summaries, all: listsAll) { owner in
        owner.excluded.reduce(into: owner.included.bytes) { $0.addClamping($1.totals.bytes) }
      }
    }

    /// Writes the report. If `isQuiet`, writes only the reasons for an exit status other than 0,
    /// which include warnings if `isStrict`.
    func write(_ console: Console, isQuiet: Bool, isStrict: Bool = false) throws {
      if !isQuiet {
        try console.result(heading)
        try console.result(table, remainder: owners.remainder, indent: "  ")
        try console.result(summary)
        if let databases { try console.result(databases) }
        showDevice(console)
        showBundles(console)
      }
      if let report { console.warn(of: report.damagedObjects) }
      console.remarks(
        report?.unreadable ?? plan.unreadable, as: .warning("not in the snapshot: "),
        all: listsAll, text: realPaths.text)
      if let report { showWaiting(report, console) }
      let warnings = report?.warnings ?? plan.warnings
      let inUse = Set((report?.databasesInUse ?? []).map(\.path))
      let serious = report?.seriousWarnings ?? []
      if isQuiet {
        let reasons = warnings.filter {
          isStrict || inUse.contains($0.path) || serious.contains($0.path)
        }
        return console.remarks(reasons, as: .warning(""), all: listsAll, text: realPaths.text)
      }
      console.remarks(
        warnings.filter { serious.contains($0.path) }, as: .warning(""), all: listsAll,
        text: realPaths.text)
      console.remarks(
        warnings.filter { !inUse.contains($0.path) && !serious.contains($0.path) }, as: .note(""),
        all: listsAll, text: realPaths.text)
      console.list(report?.remarks ?? [], as: .note(""), all: listsAll, text: \.self)
    }

    /// Writes a note on the files that a backup of the locked device would not read.
    static func note(ofProtected totals: EntryTotals, _ console: Console) {
      guard totals.files > 0 else { return }
      console.note(
        "\(Sizes.count(totals.files, "file")) (\(Sizes.text(totals.bytes))) cannot be read while the "
          + "device is locked: those that changed since the last snapshot would wait")
    }

    /// Writes a warning about the files that wait because the device is locked, and lists the
    /// largest.
    private func showWaiting(_ report: BackupReport, _ console: Console) {
      let waiting = report.waiting
      guard !waiting.isEmpty else { return }
      let earlier = waiting.count { $0.hasEarlier }
      let bytes = waiting.lazy.map(\.bytes).clampedSum
      console.warning(
        "\(Sizes.count(waiting.count, "file")) (\(Sizes.text(bytes))) cannot be read while the "
          + "device is locked; the snapshot has an earlier version of \(earlier)")
      let excerpt = ListExcerpt(waiting, all: listsAll, isEmpty: { _ in false }, size: \.bytes)
      for file in excerpt.shown {
        console.warning(
          "waiting: \(realPaths.text(file.note)), \(Sizes.text(file.bytes))")
      }
      if let remainder = excerpt.remainder { console.warning("waiting: \(remainder)") }
    }

    /// Writes a note on the bundles that are excluded only because the repository is in a bucket.
    private func showBundles(_ console: Console) {
      let bundles = plan.bundlesOutsideCloud
      guard bundles.count > 0 else { return }
      console.note(
        "not in the snapshot: \(Sizes.count(bundles.count, "bundle")) "
          + "(\(Sizes.text(bundles.bytes))); \(BackupPlan.bundleHint)")
    }

    /// Writes notes on how the data was found: symbolic links and mounts that were followed, and
    /// deviations from the platform's layout.
    private func showDevice(_ console: Console) {
      for system in plan.device.systemContainers where system.count > 0 {
        console.note(
          "not in the snapshot: \(Sizes.count(system.count, "container")) in \(system.path), of a "
            + "kind that the layout \(plan.device.layout.rawValue) does not know; "
            + "'--layout folder --root <dir>' backs up any directory")
      }
      let findings = plan.device.findings.filter { finding in
        switch finding.code {
        case .linkFollowed, .mountEntered, .danglingLink, .claimedTwice, .excluded, .anotherLayout:
          true
        default: Self.mayBeMissed(finding, in: plan.device.layout)
        }
      }
      console.list(findings, as: .note(""), all: listsAll) { "\($0.path): \($0.reason)" }
    }

    /// Whether a finding means that data may be in no container, on a device whose layout covers
    /// only a part of the data.
    private static func mayBeMissed(_ finding: Finding, in layout: Layout) -> Bool {
      switch layout {
      case .android, .systemd, .xdg:
        finding.severity == .warning || finding.code == .unsupported
          || finding.code == .unusableName
      case .coreSimulator, .flatpak, .macOS, .snap, .folder: false
      }
    }

    private var heading: String {
      let device = plan.device
      let user = Host.userName(Host.userID) ?? "\(Host.userID)"
      let name = device.name ?? ByteString("\(user)@\(Host.name)")
      let apps = device.layout == .folder ? "" : ": \(Sizes.count(device.apps.count, "app"))"
      return "device  \(name), \(device.layout.rawValue), \(Paths.text(device.root))\(apps)"
    }

    private var table: Table {
      var table = Table([
        (plan.device.layout == .folder ? "folder" : "app", .left), ("keeps", .right),
        ("excludes", .left),
      ])
      for owner in owners.shown {
        table.add([
          Self.name(owner.path), Sizes.text(owner.included.bytes), exclusions.text(owner),
        ])
      }
      return table
    }

    private static func name(_ path: ByteString) -> String {
      let parts = path.components
      guard parts.count == 2, parts[0] == "apps" else { return path.description }
      return parts[1].description
    }

    private var summary: String {
      guard let report else {
        return "would keep \(Sizes.text(plan.includedTotals.bytes)) in "
          + "\(Sizes.count(plan.includedTotals.files, "file")), exclude \(Sizes.text(plan.excludedTotals.bytes))"
      }
      if report.isUnchanged { return "nothing changed since the last snapshot: no snapshot made" }
      let id = report.snapshot.map { String($0.id.hex.prefix(8)) } ?? ""
      let isFirst = report.snapshot?.snapshot.parent == nil
      return "\(isFirst ? "first backup" : "backup"): \(Sizes.text(report.bytes)) in "
        + "\(Sizes.count(report.files, "file")) -> \(Sizes.text(report.storedBytes)) stored "
        + "in \(Times.duration(report.seconds))   snapshot \(id)"
    }

    /// "2 databases stored without locks (in use): org.chromium.Chromium …"
    private var databases: String? {
      let databases = report?.databasesInUse ?? []
      guard !databases.isEmpty else { return nil }
      var owners: [String] = []
      for database in databases {
        let owner = Self.name(database.path.subject)
        if !owners.contains(owner) { owners.append(owner) }
      }
      let more = owners.count > Self.shownOwners ? " …" : ""
      let id = report?.snapshot.map { "   sandboxctl snapshots show \($0.id.hex.prefix(8))" } ?? ""
      return "\(Sizes.count(databases.count, "database")) stored without locks (in use): "
        + owners.prefix(Self.shownOwners).joined(separator: ", ") + more + id
    }

    private static let shownOwners = 3
  }
}

extension BackupPlan.OwnerExclusions {
  /// Returns the excluded data of an app by its largest class: `1.1 GiB cache`, `212 GiB downloaded
  /// (steamapps/common), 2.0 MiB more`; and the location of the app if it is outside the device's
  /// directory.
  func text(_ owner: BackupPlan.OwnerSummary) -> String {
    var parts: [String] = []
    let left = owner.excluded.filter { $0.totals.bytes > 0 }
    if let largest = left.first {
      let location = location(of: largest.dataClass, in: owner.path).map {
        " (\(ByteString(joining: $0.components.suffix(2))))"
      }
      parts.append(
        "\(Sizes.text(largest.totals.bytes)) \(largest.dataClass.rawValue)\(location ?? "")")
      let rest = left.dropFirst().lazy.map(\.totals.bytes).clampedSum
      if rest > 0 { parts.append("\(Sizes.text(rest)) more") }
    }
    if let outside = outside(owner.path) { parts.append("on \(Paths.text(outside))") }
    return parts.joined(separator: ", ")
  }
}

extension BackupCommand {
  /// The commands to suggest after a backup.
  struct NextSteps {
    /// "next: sandboxctl restore latest --app firefox --to restored     sandboxctl ls latest"
    let line: String

    /// Nil if no snapshot was made. `suffix` is added to each command. `latest` is suggested only
    /// if it names the snapshot just made, as far as the runs have seen: this line does not justify
    /// a request.
    init?(_ done: [DeviceBackup.Outcome], suffix: String) {
      let made = done.filter { $0.report.snapshot != nil }
      guard let first = made.first, let stored = first.report.snapshot else { return nil }
      // 'latest' names a snapshot of a whole device, and warns if there are several devices.
      let devices = done.reduce(into: Set<String>()) { $0.formUnion($1.report.devices) }
      let isOnlyDevice = devices.isSubset(of: [stored.snapshot.device.identity])
      let isLatest = made.count == 1 && stored.snapshot.scope == .device && isOnlyDevice
      let name = isLatest ? "latest" : String(stored.id.hex.prefix(8))
      let app = Self.app(first.plan, in: stored.snapshot)
      let part = app.map { " --app \(ShellWord.text($0))" } ?? ""
      let commands = ["restore \(name)\(part) --to restored\(suffix)", "ls \(name)\(suffix)"]
      line = "next: " + commands.map { "sandboxctl \($0)" }.joined(separator: "     ")
    }

    /// Returns the shortest name of the first app with kept data.
    private static func app(_ plan: BackupPlan, in snapshot: Snapshot) -> String? {
      let kept = plan.summaries.filter { $0.included.files > 0 }.map(\.path)
      return snapshot.apps.first { app in
        kept.contains(ByteString("apps").appending(ByteString(app.identifier)))
      }
      .map(snapshot.shortestName)
    }
  }
}

extension Snapshot {
  /// Returns the shortest name that identifies an app and needs no quotes in a shell, in lower
  /// case; otherwise its identifier.
  func shortestName(of app: AppRecord) -> String {
    // The last component of a unit's name is its type.
    if device.layout == Layout.systemd.rawValue { return app.identifier }
    let last = app.identifier.split(separator: ".").last.map(String.init)
    let names = [last, app.name].compactMap { $0?.lowercased() }.filter { name in
      ShellWord.text(name) == name && !name.hasPrefix("-")
        && (try? self.app(ByteString(name)))?.identifier == app.identifier
    }
    let shorter = names.filter { $0.utf8.count < app.identifier.utf8.count }
    return shorter.min { $0.utf8.count < $1.utf8.count } ?? app.identifier
  }
}

extension BackupPlan {
  /// The option that stores bundles in a bucket.
  fileprivate static let bundleHint = "'--with-bundles' stores bundles in a bucket, too"

  /// The plan as `backup --json` prints it with a report.
  var json: JSONStream { json(nil) }

  /// Returns the plan as `backup --dry-run --json` prints it.
  ///
  /// - Parameter protected: the files that cannot be read while the device is locked, or nil if it
  ///   is not.
  func json(_ protected: EntryTotals?) -> JSONStream {
    var stream = JSONStream(
      device.members(policy: policy.name, policy.digest) + [
        JSON.Member("keeps", includedTotals.json), JSON.Member("leaves_out", excludedTotals.json),
      ])
    stream.add("owners", .elements(summaries.lazy.map(\.json)))
    stream.add(
      "left_out",
      .elements(
        excluded.lazy.map { [bundlesOutsideCloud] exclusion in
          exclusion.json(hint: bundlesOutsideCloud.contains(exclusion) ? Self.bundleHint : nil)
        }))
    stream.add([
      JSON.Member("unreadable", RealPaths(device).json(unreadable)),
      JSON.Member("warnings", RealPaths(device).json(warnings)),
      JSON.Member("system_containers", .array(device.systemContainers.map(\.json))),
    ])
    if let protected { stream.add([JSON.Member("protected", protected.json)]) }
    return stream
  }
}

extension BackupPlan.OwnerSummary {
  var json: JSON {
    var members = JSON.path(path)
    members.append(JSON.Member("keeps", included.json))
    let left = excluded.map { JSON.Member($0.dataClass.rawValue, $0.totals.json) }
    members.append(JSON.Member("leaves_out", .object(left)))
    return .object(members)
  }
}

extension BackupReport {
  /// Returns the report as `backup --json` prints it.
  func json(_ plan: BackupPlan, isOnSameDisk: Bool) -> JSONStream {
    let head: JSON = [
      "snapshot": snapshot.map { .string($0.id.hex) } ?? .null,
      "parent": snapshot?.snapshot.parent.map { .string($0.hex) } ?? .null,
      "files": .integer(Int64(files)), "entries": .integer(Int64(entries)),
      "bytes": .integer(Int64(clamping: bytes)),
      "stored_bytes": .integer(Int64(clamping: storedBytes)),
      "opened": .integer(Int64(opened)), "unchanged": .bool(isUnchanged),
      "new_blobs": .integer(Int64(clamping: statistics?.newBlobs ?? 0)),
      "seconds": .double(seconds), "unreadable": RealPaths(plan.device).json(unreadable),
      "warnings": RealPaths(plan.device).json(warnings),
      "remarks": .array((remarks + damagedObjects.map(\.description)).map { .string($0) }),
      "same_disk": .bool(isOnSameDisk),
    ]
    var stream = JSONStream(head.members ?? [])
    if !waiting.isEmpty {
      let paths = RealPaths(plan.device)
      let largest = waiting.sorted { ($1.bytes, $0.path) < ($0.bytes, $1.path) }
      stream.add("waiting", .elements(largest.lazy.map { $0.json(paths) }))
    }
    stream.add("plan", .object(plan.json))
    return stream
  }
}

extension LockedFile {
  fileprivate func json(_ paths: RealPaths) -> JSON {
    let real = paths.path(of: path).map { JSON.path($0, named: "real_path") } ?? []
    return .object(
      JSON.path(path) + real + [
        JSON.Member("bytes", .integer(Int64(clamping: bytes))),
        JSON.Member("protection", .string(protection.rawValue)),
        JSON.Member("earlier_version", .bool(hasEarlier)),
      ])
  }
}
