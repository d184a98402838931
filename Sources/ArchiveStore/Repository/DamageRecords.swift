internal import Codecs
internal import SystemIO

extension DamageRecords {
  /// The packs that a check found damaged, stored as `damaged/<id>.json`. No writer relies on them
  /// (docs/repository-format.md, "Damaged packs").
  struct Record {
    /// A pack and its sizes in bytes: the actual size, and the size in the index.
    struct Pack: Hashable {
      let id: Digest
      let size: UInt64
      let expected: UInt64?
    }

    var time: Timestamp
    /// The packs, ordered by id.
    var packs: [Pack]

    static let format = "sandboxctl-damaged"

    init(_ packs: [Pack], time: Timestamp = Host.now()) {
      self.time = time
      self.packs = packs.sorted { $0.id < $1.id }
    }

    func encode() -> [UInt8] {
      let json: JSON = [
        "format": .string(Self.format), "version": 1, "time": .string(time.rfc3339),
        "packs": .array(packs.map(\.json)),
      ]
      return json.line
    }

    init(_ text: [UInt8], object: String) throws(StoreError) {
      let json: JSON
      do { json = try JSON(parsing: text) } catch { throw .damaged(object, error.description) }
      let fields = JSONFields(json: json, object: object)
      guard try fields.string("format") == Self.format, try fields.count("version") == 1 else {
        throw StoreError(
          .unsupported, "use", subject: object,
          reason: "it is not a version 1 record of damaged packs",
          hint: "use a newer sandboxctl")
      }
      guard let time = Timestamp(rfc3339: try fields.string("time")) else {
        throw fields.fault("time", "a time")
      }
      self.time = time
      packs = try fields.elements("packs") { pack throws(StoreError) in
        Pack(
          id: try pack.digest("id"), size: try pack.count("size"),
          expected: pack.json["expected"] == nil ? nil : try pack.count("expected"))
      }
    }
  }
}

extension DamageRecords.Record.Pack {
  fileprivate var json: JSON {
    var members = [
      JSON.Member("id", .string(id.hex)), JSON.Member("size", .integer(Int64(clamping: size))),
    ]
    if let expected {
      members.append(JSON.Member("expected", .integer(Int64(clamping: expected))))
    }
    return .object(members)
  }
}

/// All damage records of a repository.
struct DamageRecords {
  /// The packs of all records.
  private(set) var packs: [Digest: Record.Pack] = [:]
  /// The names of the records, including damaged ones.
  private(set) var names: [ByteString] = []
  /// The packs of each usable record.
  private var contents: [ByteString: Set<Record.Pack>] = [:]
  /// The records that cannot be used, with the reason.
  private(set) var faults: [(path: ObjectPath, error: StoreError)] = []

  /// Loads the records. An unusable record is skipped, because the next check finds the damage
  /// again. Callers that rely on unrecorded packs call `complete`.
  init(_ storage: RepositoryStorage) throws(StoreError) {
    try self.init(try storage.listIfPresent(RepositoryLayout.damaged) ?? [], storage)
  }

  /// Loads the records of a listing. Other names are ignored.
  init(_ listed: [ByteString], _ storage: RepositoryStorage) throws(StoreError) {
    for name in listed {
      guard let id = RepositoryLayout.id(name, suffix: ".json") else { continue }
      let path = RepositoryLayout.damaged.appending(name)
      do throws(StoreError) {
        let bytes = try storage.loadStored(id, at: path, limit: FormatLimit.contents)
        let record = try Record(bytes, object: "\(path)")
        for pack in record.packs { packs[pack.id] = pack }
        names.append(name)
        contents[name] = Set(record.packs)
      } catch {
        if error.code == .missing { continue }
        guard error.costsTheObjectAlone else { throw error }
        faults.append((path, error))
        if error.code == .damaged { names.append(name) }
      }
    }
  }
}

extension DamageRecords {
  /// The same records, of a user who may read all of them: a writer that cannot see a record would
  /// rely on the packs in it.
  ///
  /// - Throws: the first refusal.
  func complete() throws(StoreError) -> DamageRecords {
    if let (_, error) = faults.first(where: { $0.error.isRefused }) { throw error }
    return self
  }

  /// Saves one record of all damaged packs, unless it already exists, then removes the others.
  /// Those that this user may not remove stay: no writer relies on the packs in them. Later checks
  /// do not add to them.
  func replace(by packs: [Record.Pack], _ lease: Lease) throws(StoreError) {
    var current: ByteString?
    if let same = contents.first(where: { $0.value == Set(packs) }), !packs.isEmpty {
      current = same.key
    } else if !packs.isEmpty {
      let bytes = Record(packs).encode()
      let name = ByteString(Blake2b.hash(bytes).hex + ".json")
      try lease.save(bytes, as: RepositoryLayout.damaged.appending(name))
      current = name
    }
    for name in names where name != current {
      do throws(StoreError) {
        try lease.storage.remove(RepositoryLayout.damaged.appending(name))
      } catch {
        guard error.code == .missing || error.isRefused else { throw error }
      }
    }
  }
}
