internal import Codecs
internal import Synchronization

/// The entries of index objects by pack, for packs whose own tables are not usable.
///
/// The entries of an object are in the order of their ids, so finding those of one pack takes a
/// scan of all. An object is scanned when one of its packs is first asked for, once for all of its
/// packs: an index can have millions of entries in thousands of packs. It costs 4 bytes per entry
/// until the end. Safe to use from any thread.
final class PackEntries: Sendable {
  private let objects: [IndexObject]
  private let found = Mutex<[Int: Numbers]>([:])

  init(of objects: [IndexObject]) { self.objects = objects }

  /// Returns the entries of a pack of an object, by their positions in the lists.
  func records(ofPack pack: Int, in object: Int) -> [BlobRecord] {
    let numbers = found.withLock { found in
      let known = found[object] ?? Numbers(of: objects[object])
      found[object] = known
      return known[pack]
    }
    return numbers.compactMap { objects[object].record(Int($0)) }
  }

  /// The numbers of the entries of one object, ordered by pack.
  private struct Numbers {
    private var numbers: [UInt32]
    /// The position of the first number of each pack, and the end.
    private var starts: [Int]

    init(of object: IndexObject) {
      let none = UInt32(object.packs)
      let packs = (0..<object.blobs).map { min(object.record($0)?.pack ?? none, none) }
      starts = [Int](repeating: 0, count: object.packs + 1)
      for pack in packs where pack != none { starts[Int(pack) + 1] += 1 }
      for pack in 0..<object.packs { starts[pack + 1] += starts[pack] }
      numbers = [UInt32](repeating: 0, count: starts[object.packs])
      var next = starts
      for (number, pack) in packs.enumerated() where pack != none {
        numbers[next[Int(pack)]] = UInt32(number)
        next[Int(pack)] += 1
      }
    }

    subscript(pack: Int) -> ArraySlice<UInt32> { numbers[starts[pack]..<starts[pack + 1]] }
  }
}
