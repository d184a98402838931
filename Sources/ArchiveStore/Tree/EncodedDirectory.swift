internal import Codecs
internal import SystemIO

/// The encoded entries of a directory, ordered by name.
///
/// They share one arena, so a directory of a million entries takes little more memory than their
/// bytes.
public struct EncodedDirectory: Sendable {
  private var names = SpillableArray<UInt8>()
  private var nameEnds = SpillableArray<Int>()
  private var bytes = SpillableArray<UInt8>()
  private var ends = SpillableArray<Int>()

  /// Creates an empty directory.
  public init() {}

  /// Encodes entries in any order.
  ///
  /// - Throws: `invalid` for two entries of the same name, and for an invalid entry.
  init(_ entries: [TreeEntry]) throws(StoreError) {
    let isSorted = zip(entries, entries.dropFirst()).allSatisfy { $0.name < $1.name }
    for entry in isSorted ? entries : entries.sorted(by: { $0.name < $1.name }) {
      let encoded = try entry.encoded()
      try entry.name.withSpan { name throws(StoreError) in try append(name, encoded) }
    }
  }

  /// The number of entries.
  public var count: Int { ends.count }

  /// Appends an entry.
  ///
  /// - Parameter name: the name of the entry.
  /// - Parameter entry: the result of `TreeEntry.encoded()` for the entry.
  /// - Throws: `invalid` if the name does not come after the last one.
  public mutating func append(
    _ name: Span<UInt8>, _ entry: some Collection<UInt8>
  ) throws(StoreError) {
    if count > 0, names.withSpan({ !$0.extracting(nameRange(count - 1)).precedes(name) }) {
      throw .invalid("the entry \(Self.text(name))", "its name is a duplicate or out of order")
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

  /// Returns the name of an entry.
  func name(_ index: Int) -> ByteString { ByteString(names.copy(nameRange(index))) }

  /// Returns the hash of an entry's name, which determines page boundaries.
  func nameHash(_ index: Int) -> Digest {
    names.withSpan { Blake2b.hash($0.extracting(nameRange(index))) }
  }

  /// Returns the size of an entry in bytes.
  func size(_ index: Int) -> Int { ends[index] - (index == 0 ? 0 : ends[index - 1]) }

  /// Returns an encoded entry.
  func entry(_ index: Int) -> ArraySlice<UInt8> {
    bytes.copy((index == 0 ? 0 : ends[index - 1])..<ends[index])
  }
}
