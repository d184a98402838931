package import Codecs

extension ForgedRepository {
  /// Adds a directory of several pages, each with named entries; lost pages are only mentioned in
  /// the table of pages.
  package mutating func addPages(
    _ pages: [[(name: [UInt8], entry: [UInt8])]], lost: Set<Int> = []
  ) -> Digest {
    var encoder = CBOREncoder()
    encoder.beginMap()
    encoder.key(1)
    encoder.beginArray(count: pages.count)
    for (number, page) in pages.enumerated() {
      var nowhere = ForgedRepository()
      let entries = page.map(\.entry)
      encoder.beginArray(count: 2)
      encoder.bytes(page.last?.name ?? [])
      encoder.digest(lost.contains(number) ? nowhere.addTree(entries) : addTree(entries))
      encoder.endArray()
    }
    encoder.endArray()
    encoder.endMap()
    return add(encoder.finish(), kind: 1)
  }
}
