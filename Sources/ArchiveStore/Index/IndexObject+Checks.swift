internal import Codecs

extension IndexObject {
  /// Returns the first violation of the format in the tables, or nil if there is none.
  func firstFault() -> String? {
    bytes.withBytes { bytes in
      if let fault = layout.packFault(bytes) { return fault }
      for kind in BlobKind.allCases {
        if let fault = layout.fanOutFault(kind, bytes) { return fault }
      }
      return layout.blobFault(bytes)
    }
  }
}

extension IndexLayout {
  /// Checks that frames follow one another within their pack, and packs within the table.
  fileprivate func packFault(_ bytes: RawSpan) -> String? {
    var next = 0
    for number in 0..<packs {
      let pack = pack(number, in: bytes)
      guard pack.firstFrame == next, pack.frames <= frames - next,
        pack.frames <= FormatLimit.framesPerPack
      else { return "pack \(number) claims frames of another pack" }
      next += pack.frames
      var end: UInt64 = 0
      for number in pack.firstFrame..<next {
        let place = frame(number, in: bytes)
        guard place.offset >= end, place.stored > 0, place.plain > 0,
          place.plain <= FormatLimit.frame, place.stored <= FormatLimit.storedFrame,
          place.offset <= pack.size, UInt64(place.stored) <= pack.size - place.offset
        else { return "frame \(number) lies outside its pack" }
        end = place.offset + UInt64(place.stored)
      }
    }
    return next == frames ? nil : "it has frames that belong to no pack"
  }

  /// Checks that the counts of the slots never decrease, and end at the number of blobs.
  fileprivate func fanOutFault(_ kind: BlobKind, _ bytes: RawSpan) -> String? {
    var last = 0
    for slot in 0..<(1 << fanOutBits[Int(kind.rawValue)]) {
      let count = fanOut(kind, slot, in: bytes)
      if count < last { return "its fan-out decreases at slot \(slot)" }
      last = count
    }
    return last == blobsByKind[Int(kind.rawValue)]
      ? nil : "its fan-out does not end at the number of blobs"
  }

  /// Checks that entries ascend by kind, hash and pack, lie in the slot of their hash, and name an
  /// existing location.
  fileprivate func blobFault(_ bytes: RawSpan) -> String? {
    var last: BlobRecord?
    for number in 0..<blobs {
      guard let record = record(number, in: bytes) else {
        return "entry \(number) has an unknown kind or an invalid size"
      }
      if let last, !last.isIndexed(before: record) { return "entry \(number) is out of order" }
      last = record
      let place = number - firstBlob(of: record.kind)
      let slot = IndexLayout.slot(record.digest, bits: fanOutBits[Int(record.kind.rawValue)])
      guard place >= 0, place < fanOut(record.kind, slot, in: bytes),
        slot == 0 || place >= fanOut(record.kind, slot - 1, in: bytes)
      else { return "entry \(number) lies in the wrong slot" }
      guard record.pack < packs else { return "entry \(number) names a pack that does not exist" }
      guard isPlaced(record, bytes) else {
        return "entry \(number) lies outside its frame"
      }
    }
    return nil
  }
}
