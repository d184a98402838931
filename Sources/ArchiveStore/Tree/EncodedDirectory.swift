internal import Codecs
internal import SystemIO

/// A directory's entries as they stand in its tree, in the order of their names.
///
/// They lie in one arena: a directory of a million entries takes little more than their bytes.
public struct EncodedDirectory: Sendable {
  private var names = SpillableArray<UInt8>()
  private var nameEnds = SpillableArray<Int>()
  private var bytes = SpillableArray<UInt8>()
  private var ends = SpillableArray<Int>()

  /// Makes a directory without entries.
  public init() {}

  /// Encodes entries that may be in any order.
  ///
  /// - Throws: `invalid` for two entries of one name, and for one that the format does not allow.
  init(_ entries: [TreeEntry]) throws(StoreError) {
    let isSorted = zip(entries, entries.dropFirst()).allSatisfy { $0.name < $1.name }
    for entry in isSorted ? entries : entries.sorted(by: { $0.name < $1.name }) {
      let encoded = try entry.encoded()
      try entry.name.withSpan { name throws(StoreError) in try append(name, encoded) }
    }
  }

  /// How many entries there are.
  public var count: Int { ends.count }

  /// Appends an entry.
  ///
  /// - Parameter entry: what `TreeEntry.encoded()` gave for the entry of that name.
  /// - Throws: `invalid` when its name does not come after the last one's.
  public mutating func append(
    _ name: Span<UInt8>, _ entry: some Collection<UInt8>
  ) throws(StoreError) {
    if count > 0, names.withSpan({ !$0.extracting(nameRange(count - 1)).precedes(name) }) {
      throw .invalid("the entry \(Self.text(name))", "its name comes twice, or out of order")
    }
    names.append(name)
    nameEnds.append(names.count)
    bytes.append(contentsOf: entry)
    ends.append(bytes.count)
  }

  private static func text(_ name: Span<UInt8>) -> String {
    ByteString(name.indices.map { name[$0] }).description
  }

  private func nameRange(_ index: Int) -> Range<Int> {
    (index == 0 ? 0 : nameEnds[index - 1])..<nameEnds[index]
  }

  /// The name of an entry.
  func name(_ index: Int) -> ByteString { ByteString(names.copy(nameRange(index))) }

  /// The hash of an entry's name, by which pages are cut.
  func nameHash(_ index: Int) -> Digest {
    names.withSpan { Blake2b.hash($0.extracting(nameRange(index))) }
  }

  /// How many bytes an entry has.
  func size(_ index: Int) -> Int { ends[index] - (index == 0 ? 0 : ends[index - 1]) }

  /// An encoded entry.
  func entry(_ index: Int) -> ArraySlice<UInt8> {
    bytes.copy((index == 0 ? 0 : ends[index - 1])..<ends[index])
  }
}
