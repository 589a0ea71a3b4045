/* A lazy clone and its copy (`cp -r`) need objects of a remote, at which others push, forget and collect
 * garbage. Every process may be killed before each durable step: docs/decisions/remotes.md, "Stores that meet
 * again".
 *
 *   spin -a lazy-clones.pml && cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m1000000
 *
 * finds no violation. With -DCOPY (spin -DCOPY -a ...) the search has not been completed: more states than 56 million.
 * With -DFAULT=1 to 5 one rule is left out, and a loss is found; rule 3 needs -DCOPY:
 *   1  a clone does not look whether a gc has begun since it read the head
 *   2  `pull --packs` removes the hold before it has brought the packs
 *   3  the hold is released although a copy has not pulled since it was made
 *   4  a gc reads the holds before its boundary is published
 *   5  the list of missing pieces is removed before the names of the packs are durable
 * -DCOPY -DFAULT=6: a pull without new pieces puts no hold if there is one, which may be an older copy's. The search
 * has not reached that loss; a test shows it (CopyOfALazyClone.OverAnOlderCopyPutsWhatItNeedsWhenItPulls).
 * With -DCOPY -DSHARED, store and copy have one hold, and `pull --packs` removes it unless it has the other's place,
 * as before: a loss is found (by a random search: -DBITSTATE -DT_RAND -DP_RAND, ./pan -m400).
 *
 * An object is a piece; a version is a name for one. Two versions may have the same object: a push takes one
 * that its base names.
 */
#ifndef FAULT
#define FAULT 0
#endif
#define OBJECTS 2
#define BIT(i) (1 << (i))
#define HAS(set, i) (((set) & BIT(i)) != 0)

byte exists;             /* objects */
byte old;                /* objects with a generation below the boundary of the gc */
bool named[2];           /* versions in the newest head */
byte object_of[2];
bool pulls[2];           /* the lazy store has read a head, and not yet used it */
bool passed[2];          /* a gc has published a boundary since then */
byte hold[2];            /* objects in the hold of each place; 0: there is none */
byte held_by;            /* SHARED: whose place the hold has, else store + 1 */

byte need[2];            /* objects that the names of each lazy store need */
byte files[2];           /* objects whose packs are files, durable */
byte coming[2];          /* the same, with names that are not */
byte missing[2];         /* the list of missing pieces */
bool lazy[2];            /* the store has that list */
bool is_there[2];
bool is_fresh_copy;      /* the copy has not pulled since it was made */

#define WHOLE(s) ((need[s] & ~(files[s] | (lazy[s] -> missing[s] & exists : 0))) == 0)
#define NAMED_EXIST(i) (!named[i] || HAS(exists, object_of[i]))
/* Where an object goes, a name comes, or a list of missing pieces goes. */
#define CHECK assert(WHOLE(0) && WHOLE(1) && NAMED_EXIST(0) && NAMED_EXIST(1))

inline killed() { goto again }

/* Uploads and head in one step: a push whose base is not the newest head begins again. */
inline push(i, o) { named[i] = true; object_of[i] = o; exists = exists | BIT(o); CHECK }
proctype pusher() {
  do
  :: atomic { !named[0] && named[1] -> push(0, object_of[1]) }
  :: atomic { !named[1] && named[0] -> push(1, object_of[0]) }
  :: atomic { !named[0] && !HAS(exists, 0) -> push(0, 0) }
  :: atomic { !named[0] && !HAS(exists, 1) -> push(0, 1) }
  :: atomic { !named[1] && !HAS(exists, 0) -> push(1, 0) }
  :: atomic { !named[1] && !HAS(exists, 1) -> push(1, 1) }
  od
}

proctype operator() {
  do
  :: atomic { named[0] -> named[0] = false; object_of[0] = 0 }
  :: atomic { named[1] -> named[1] = false; object_of[1] = 0 }
  od
}

proctype gc() {
  byte held, o;
again:
  atomic { held = 0; o = 0; old = 0 }
  if
  :: FAULT == 4 -> held = hold[0] | hold[1]
  :: else
  fi;
  atomic { /* the boundary */
    passed[0] = pulls[0]; passed[1] = pulls[1];
    old = exists;
    held = held | (named[0] -> BIT(object_of[0]) : 0) | (named[1] -> BIT(object_of[1]) : 0)
  }
  if
  :: killed()
  :: FAULT == 4 -> skip
  :: FAULT != 4 -> held = held | hold[0] | hold[1]
  fi;
  o = 0;
  do
  :: o == OBJECTS -> break
  :: killed()
  :: o < OBJECTS ->
       atomic {
         if
         :: HAS(exists & old, o) && !HAS(held, o) ->
              exists = exists & ~BIT(o); CHECK
         :: else
         fi;
         o++
       }
  od;
  atomic { held = 0; o = 0; old = 0 }
  goto again
}

#ifdef SHARED
/* With the pieces of the other store, if the hold is of its place and it is still lazy. */
inline put_hold(s, pieces) {
  atomic {
    if
    :: held_by == 2 - s && lazy[1 - s] -> hold[0] = hold[0] | pieces
    :: else -> hold[0] = pieces
    fi;
    held_by = s + 1
  }
}
inline remove_hold(s) {
  atomic {
    if
    :: held_by == 2 - s && lazy[1 - s] -> skip
    :: else -> hold[0] = 0; held_by = 0
    fi
  }
}
#define MAY_RELEASE(s) (held_by == s + 1)
#else
inline put_hold(s, pieces) {
  atomic {
    if
    :: FAULT == 6 && hold[s] != 0 && (pieces & ~missing[s]) == 0 -> skip
    :: else -> hold[s] = hold[s] | pieces
    fi;
    is_fresh_copy = (s == 1 -> false : is_fresh_copy)
  }
}
inline remove_hold(s) { hold[s] = 0 }
/* The user says `--release`: a copy that is lazy has pulled since it was made. */
#define MAY_RELEASE(s) (hold[s] != 0 && (!lazy[1 - s] || !is_fresh_copy || FAULT == 3))
#endif

proctype lazy_store(byte s) {
  byte o;
again:
  atomic { o = 0; pulls[s] = false; passed[s] = false }
  if
  :: s == 0 && !is_there[0] -> goto pull /* the clone */
  :: is_there[s] && lazy[s] -> goto pull
  :: is_there[s] && lazy[s] -> goto packs
  :: is_there[s] && !lazy[s] && MAY_RELEASE(s) -> goto release
  :: atomic { is_there[s] && need[s] != 0 -> need[s] = 0 } goto again /* rm */
#ifdef COPY
  :: atomic { s == 1 && is_there[0] -> /* cp -r, perhaps over an older copy */
       need[1] = need[0]; files[1] = files[0]; missing[1] = missing[0]; lazy[1] = lazy[0];
       is_there[1] = true; is_fresh_copy = lazy[1] }
     goto again
#endif
  fi;

pull:
  atomic {
    pulls[s] = true;
    if
    :: named[0] -> o = object_of[0]
    :: named[1] -> o = object_of[1]
    :: else -> pulls[s] = false; goto again
    fi
  }
  put_hold(s, missing[s] | BIT(o));
  if
  :: killed()
  :: skip
  fi;
  if
  :: passed[s] && FAULT != 1 -> goto again
  :: else
  fi;
  atomic { pulls[s] = false; passed[s] = false; lazy[s] = true; missing[s] = missing[s] | BIT(o) }
  if
  :: killed()
  :: skip
  fi;
  atomic { need[s] = need[s] | BIT(o); is_there[s] = true; CHECK }
  goto again;

packs:
  if
  :: FAULT == 2 -> remove_hold(s)
  :: else
  fi;
  do
  :: (missing[s] & ~(files[s] | coming[s])) == 0 -> break
  :: killed()
  :: atomic { HAS(missing[s], 0) && !HAS(files[s] | coming[s], 0) && HAS(exists, 0) -> coming[s] = coming[s] | BIT(0) }
  :: atomic { HAS(missing[s], 1) && !HAS(files[s] | coming[s], 1) && HAS(exists, 1) -> coming[s] = coming[s] | BIT(1) }
  od;
  if
  :: FAULT != 5 -> atomic { files[s] = files[s] | coming[s]; coming[s] = 0 }
  :: else
  fi;
  if
  :: killed()
  :: skip
  fi;
  atomic { lazy[s] = false; missing[s] = 0; CHECK }
  if
  :: killed()
  :: skip
  fi;
  if
  :: FAULT == 5 -> atomic { files[s] = files[s] | coming[s]; coming[s] = 0 }
  :: else
  fi;
#ifndef SHARED
  goto again; /* the hold stays until it is released */
#endif

release:
  atomic {
    if
#ifndef SHARED
    :: !MAY_RELEASE(s) -> skip
#endif
    :: else -> remove_hold(s)
    fi
  }
  goto again
}

init {
  atomic {
    run pusher(); run operator(); run gc(); run lazy_store(0); run lazy_store(1);
  }
}
