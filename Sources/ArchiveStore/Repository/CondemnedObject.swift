internal import Codecs
internal import SystemIO

/// The packs that prune is about to remove. No writer relies on their content.
struct CondemnedObject {
  let packs: [Digest]

  static let format = "sandboxctl-condemned"
  /// The maximum number of packs in one object, so that it stays below the limits of a reader.
  static let maximumPacks = 65_536

  init(packs: Set<Digest>) { self.packs = packs.sorted() }

  /// Returns the stored bytes, whose hash is the id. They are different each time, so no id is used
  /// twice.
  func encode() -> [UInt8] {
    let json: JSON = [
      "format": .string(Self.format), "version": 1,
      "random": .string(Host.randomHex(bytes: 16)),
      "packs": .array(packs.map { .string($0.hex) }),
    ]
    return json.line
  }

  /// Returns the path of a condemned object.
  static func path(_ id: Digest) -> ObjectPath {
    RepositoryLayout.condemned.appending(ByteString(id.hex + ".json"))
  }

  /// Loads a condemned object.
  ///
  /// - Throws: `missing` if it no longer exists, in which case its packs are gone as well,
  ///   `damaged` if its bytes do not match its id, and `unsupported` for intact bytes in another
  ///   form.
  static func load(_ id: Digest, from storage: RepositoryStorage) throws(StoreError)
    -> CondemnedObject
  {
    let path = path(id)
    let bytes = try storage.loadStored(id, at: path, limit: FormatLimit.contents)
    return try CondemnedObject(bytes, object: "\(path)")
  }

  /// Decodes the bytes of an intact object. If they have another form, a newer program wrote them.
  init(_ bytes: [UInt8], object: String) throws(StoreError) {
    guard let json = try? JSON(parsing: bytes), json["format"]?.string == Self.format,
      json["version"]?.integer == 1, let list = json["packs"]?.array
    else { throw Self.unsupported(object) }
    packs = try list.map { pack throws(StoreError) in
      guard let id = pack.string.flatMap({ Digest(hex: $0) }) else {
        throw Self.unsupported(object)
      }
      return id
    }
  }

  private static func unsupported(_ object: String) -> StoreError {
    StoreError(
      .unsupported, "use", subject: object,
      reason: "it is not a version 1 list of condemned packs", hint: "use a newer sandboxctl")
  }
}

/// All condemned objects of a repository.
struct CondemnedObjects {
  /// The ids of the listed objects, including those that were gone when they were read.
  private(set) var ids: [Digest] = []
  private(set) var objects: [Digest: CondemnedObject] = [:]
  /// The errors of the damaged objects, ordered by id. The packs that they name are unknown.
  private(set) var damaged: [(id: Digest, error: StoreError)] = []

  /// Loads all objects.
  ///
  /// - Throws: `unsupported` for an object of a newer version, and failures of the storage.
  init(_ storage: RepositoryStorage) throws(StoreError) {
    try self.init(try storage.listIfPresent(RepositoryLayout.condemned) ?? [], storage)
  }

  /// Loads the objects of a listing. Other names are ignored.
  init(_ names: [ByteString], _ storage: RepositoryStorage) throws(StoreError) {
    ids = names.compactMap { RepositoryLayout.id($0, suffix: ".json") }
    for id in ids {
      do {
        objects[id] = try CondemnedObject.load(id, from: storage)
      } catch {
        switch error.code {
        case .missing: continue
        case .damaged: damaged.append((id, error))
        default: throw error
        }
      }
    }
  }

  /// Loads the objects of a repository from which a writer has removed damaged ones on opening it.
  ///
  /// - Throws: also `damaged`, because the packs that such an object names are unknown.
  static func intact(_ storage: RepositoryStorage) throws(StoreError) -> CondemnedObjects {
    let all = try CondemnedObjects(storage)
    if let (_, error) = all.damaged.first { throw error }
    return all
  }

  /// The packs of all undamaged objects.
  var packs: Set<Digest> { Set(objects.values.flatMap(\.packs)) }
}

extension CondemnedObjects {
  /// Removes the damaged objects that are regular files, so that the packs that they named stay.
  /// The holder of the lease has not listed index objects and packs yet (docs/repository-format.md,
  /// "Damaged condemned objects").
  ///
  /// - Throws: `StoreError`: `busy` if another program is removing objects, since it may have read
  ///   the list before it was damaged; `unknownFeature`, `leaseLost`.
  func removeDamaged(from repository: Repository, by lease: Lease) throws(StoreError) {
    try repository.requireKnownFeatures(for: .prune)
    let right = try PruneLease(lease, for: "remove a damaged list of condemned packs from")
    defer { right.release() }
    // A program that lost the right while it was suspended cannot remove packs without its lease.
    try lease.removeExpiredOthers()
    guard try lease.storage.leases.sleepingRemovers().isEmpty else {
      throw PruneLease.sleeping(
        "remove a damaged list of condemned packs from", repository.location)
    }
    for (id, _) in damaged {
      guard try lease.storage.status(CondemnedObject.path(id))?.isDirectory == false else {
        continue
      }
      try right.requireHeld()
      try lease.remove(CondemnedObject.path(id))
    }
  }

  /// The errors of the damaged objects after these were removed.
  var removed: [StoreError] {
    damaged.map { _, error in
      StoreError(
        .damaged, error.action, subject: error.subject,
        reason: "\(error.reason), and it was removed",
        hint: "nothing is lost: packs without used data stay until the next 'sandboxctl prune'",
        cause: error.cause)
    }
  }
}
