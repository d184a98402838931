internal import ArchiveStore
internal import Codecs
internal import DeviceScan
internal import DeviceTransaction
internal import Restore
internal import SandboxModel
internal import SystemIO

/// The real paths of logical paths on a device, for remarks about them.
struct RealPaths {
  private let device: Device
  /// The targets of containers that are moved or created, by logical path.
  private let targets: [(path: ByteString, target: ByteString)]

  init(_ device: Device) { (self.device, targets) = (device, []) }

  /// Uses the targets of a restore.
  init(_ plan: DeviceRestorePlan) {
    device = plan.request.device
    targets = plan.parts.map { ($0.path, $0.target) }
  }

  /// Returns the real path, or nil if the path is not a logical path or not in a container.
  func path(of logical: ByteString) -> ByteString? {
    for (path, target) in targets where logical.isWithin(path) {
      return target.appending(ByteString(logical.bytes.dropFirst(path.count).drop { $0 == 0x2f }))
    }
    guard !logical.isAbsolute, let path = try? LogicalPath(logical) else { return nil }
    return try? device.realPath(of: path)
  }

  /// Returns a remark as text: "apps/org.a/data/x (/home/u/…/x): permission denied".
  func text(_ remark: PathRemark) -> String {
    let realPath = path(of: remark.path).map { " (\($0))" } ?? ""
    return "\(remark.path)\(realPath): \(remark.remark)"
  }

  /// Returns remarks as JSON, with `real_path` if it is known.
  func json(_ remarks: [PathRemark]) -> JSON {
    .array(
      remarks.map { remark in
        let realPath = path(of: remark.path).map { JSON.path($0, named: "real_path") } ?? []
        return .object(
          JSON.path(remark.path) + realPath + [JSON.Member("note", .string(remark.remark))])
      })
  }
}

extension PathRemark {
  var json: JSON { .object(JSON.path(path) + [JSON.Member("note", .string(remark))]) }
}

extension Exclusion {
  var json: JSON { json(hint: nil) }

  /// Returns the exclusion with the option that stores the data, or nil if there is none.
  func json(hint: String?) -> JSON {
    .object(
      JSON.path(path) + [
        JSON.Member("rule", .string(rule)), JSON.Member("files", .integer(Int64(clamping: files))),
        JSON.Member("bytes", .integer(Int64(clamping: bytes))),
      ] + (hint.map { [JSON.Member("hint", .string($0))] } ?? []))
  }
}

extension Console {
  /// Warns about data that the snapshot lacks although its policy keeps it. The restore is complete
  /// nevertheless: it has everything that the snapshot has.
  func warn(
    ofIncomplete data: [PathRemark], all: Bool,
    text: (PathRemark) -> String = { "\($0.path): \($0.remark)" }
  ) {
    remarks(data, as: .warning("incomplete in the snapshot: "), all: all, text: text)
  }

  /// Prints how much of the restored data the snapshot's policy excluded.
  func note(excludedData: [Exclusion]) {
    if excludedData.isEmpty { return }
    let bytes = excludedData.lazy.map(\.bytes).clampedSum
    let files = Int(clamping: excludedData.lazy.map(\.files).clampedSum)
    note(
      "the snapshot lacks data that its policy excluded: \(Sizes.text(bytes)) in "
        + "\(Sizes.count(files, "file")); 'sandboxctl snapshots show' lists it")
  }

  /// Prints how much of the stored data the policy does not restore: it may have been stored with
  /// another policy.
  func note(omitted: RestoreTotals, by policy: String) {
    if omitted.files == 0 { return }
    note(
      "the policy '\(policy)' does not restore \(Sizes.text(omitted.bytes)) in "
        + "\(Sizes.count(omitted.files, "file")) of the snapshot: to restore this data, use '--policy' "
        + "with the policy file of the backup, or its path")
  }
}

extension Console {
  /// Prints the groups that a restore keeps unchanged.
  ///
  /// - Parameter option: the option of the command that includes them.
  func note(
    leftGroups: [DeviceRestorePlan.LeftGroup], all: Bool, option: String = "--with-groups"
  ) {
    list(leftGroups, as: .note("skipped: "), all: all) { group in
      "\(group.path): \(group.reason); '\(option)' includes it"
    }
  }
}

extension RestoreTotals {
  var json: JSON {
    [
      "files": .integer(Int64(files)), "folders": .integer(Int64(directories)),
      "links": .integer(Int64(links)), "specials": .integer(Int64(specials)),
      "bytes": .integer(Int64(clamping: bytes)),
    ]
  }

  /// Prints a line with the totals, unless there are no entries.
  func show(_ words: String, _ console: Console) throws {
    if entries > 0 { try console.result("\(words) \(text)") }
  }

  /// The totals: "3.1 GiB in 41,209 files, 812 directories, 14 links".
  var text: String {
    var parts = [Sizes.text(bytes, in: files), Sizes.count(directories, "directory")]
    if links > 0 { parts.append(Sizes.count(links, "link")) }
    if specials > 0 { parts.append(Sizes.count(specials, "special file")) }
    return parts.joined(separator: ", ")
  }
}

extension VolumeNeed {
  /// The need as `restore --dry-run --json` prints it.
  var json: JSON {
    .object(
      JSON.path(directory) + [
        JSON.Member("bytes_needed", .integer(Int64(clamping: bytes))),
        JSON.Member("bytes_free", space.isKnown ? .integer(Int64(clamping: room)) : .null),
        JSON.Member("entries_needed", .integer(Int64(clamping: entries))),
        JSON.Member(
          "entries_free",
          space.countsInodes ? .integer(Int64(clamping: space.availableInodes)) : .null),
        JSON.Member("fits", .string(verdict.rawValue)),
      ])
  }
}

extension Console {
  /// Warns about volumes that may lack room. The operation is tried nevertheless.
  func warn(ofPerhapsTooMuch needs: [VolumeNeed]) {
    for need in needs where need.verdict == .uncertain {
      warning(
        "there may not be enough space in '\(need.directory)': \(need.shortage ?? ""), if existing "
          + "files are kept and nothing is compressed")
    }
  }

  /// Warns about volumes that lack room, for which the operation would be refused.
  func warn(ofTooMuch needs: [VolumeNeed]) {
    for need in needs where need.verdict == .lacksRoom {
      warning(
        "would be refused: in '\(need.directory)' \(need.shortage ?? ""); \(RestorePlan.roomHint)"
      )
    }
  }
}

extension RunningApps.Sign {
  var json: JSON {
    .object(
      JSON.path(app, named: "app") + [JSON.Member("process", .integer(Int64(process)))]
        + JSON.path(program, named: "program") + JSON.path(file, named: "file"))
  }
}

extension DeviceRestorePlan.LeftGroup {
  var json: JSON {
    .object(
      JSON.path(path) + [JSON.Member("shared_by", .array(sharers.map { .string($0) }))])
  }

  /// The reason why it is skipped.
  var reason: String {
    if sharers.isEmpty { return "its owner is only guessed" }
    return "it is shared by " + sharers.map { "'\(ByteString($0))'" }.joined(separator: ", ")
  }
}
