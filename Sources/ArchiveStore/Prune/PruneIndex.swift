internal import Codecs
internal import SystemIO

/// The index as a prune uses it: the index objects, and the state of each pack that they name.
///
/// The entries of a pack that several objects name are used only in the first of them, so each is
/// counted once.
struct PruneIndex: Sendable {
  /// The state of a pack, the most reliable first.
  enum PackState: UInt8, Sendable, Comparable {
    /// It exists, and writers may rely on it.
    case reliable
    /// It exists, and is to be removed.
    case condemned
    /// It exists with another size than in the index, or a check recorded it as damaged.
    case damaged
    /// It does not exist.
    case missing
    /// An earlier object names it.
    case repeated

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
  }

  /// The position of an entry: the number of its object, and its own number in the object.
  struct Entry: Hashable, Sendable, BitwiseCopyable {
    let object: UInt32
    let number: UInt32
  }

  private(set) var objects: [IndexObject] = []
  /// For each object, the states of its packs.
  private(set) var states: [[PackState]] = []
  private var named: Set<Digest> = []

  /// Adds an object. `state` returns the state of a pack that no earlier object names.
  mutating func add(
    _ object: IndexObject, state: (IndexObject.Pack) throws(StoreError) -> PackState
  ) throws(StoreError) {
    var found: [PackState] = []
    found.reserveCapacity(object.packs)
    for number in 0..<object.packs {
      let pack = object.pack(number)
      found.append(named.insert(pack.id).inserted ? try state(pack) : .repeated)
    }
    objects.append(object)
    states.append(found)
  }

  /// Whether an object was added.
  func contains(_ object: Digest) -> Bool { objects.contains { $0.id == object } }

  /// Whether any object names a pack.
  func names(_ pack: Digest) -> Bool { named.contains(pack) }

  /// Changes the state of packs.
  mutating func set(_ state: PackState, of packs: Set<Digest>) {
    for (number, object) in objects.enumerated() {
      for pack in 0..<object.packs
      where states[number][pack] != .repeated && packs.contains(object.pack(pack).id) {
        states[number][pack] = state
      }
    }
  }

  /// Returns the best entry of a blob and the state of its pack: in a reliable pack if there is
  /// one. Returns nil if no existing pack has the blob.
  func find(_ blob: BlobID) -> (entry: Entry, state: PackState)? {
    var best: (entry: Entry, state: PackState)?
    for (number, object) in objects.enumerated() {
      for entry in object.entries(of: blob) {
        guard let record = object.record(entry) else { continue }
        let state = states[number][Int(record.pack)]
        guard state < .missing, best.map({ state < $0.state }) ?? true else { continue }
        best = (Entry(object: UInt32(number), number: UInt32(entry)), state)
        if state == .reliable { return best }
      }
    }
    return best
  }

  /// The packs in a state.
  func packs(in wanted: PackState) -> Set<Digest> {
    var packs: Set<Digest> = []
    for (number, object) in objects.enumerated() {
      for pack in 0..<object.packs where states[number][pack] == wanted {
        packs.insert(object.pack(pack).id)
      }
    }
    return packs
  }

  /// The objects as a set for lookups in packs that exist.
  var existing: IndexSet {
    let missing = packs(in: .missing)
    return IndexSet(objects) { !missing.contains($0) }
  }
}
