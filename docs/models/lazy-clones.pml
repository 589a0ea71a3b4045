/* A lazy clone and its copy (`cp -r`) need objects of a remote, at which others push, forget and collect
 * garbage. Every process may be killed before each durable step: docs/decisions/remotes.md, "Stores that meet
 * again".
 *
 *   spin -a lazy-clones.pml && cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m1000000
 *
 * finds no violation. With -DFAULT=1 to 5 (spin -DFAULT=1 -a ...) one rule is left out, and a loss is found:
 *   1  a clone does not look whether a gc has begun since it read the head
 *   2  `pull --packs` removes the hold before it has brought the packs
 *   3  `pull --packs` in a copy removes the hold of the original
 *   4  a gc reads the holds before its boundary is published
 *   5  the list of missing pieces is removed before the names of the packs are durable
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
bool passed[2];          /* a gc has published a boundary since the lazy store read a head */
byte hold;               /* objects in the hold */
byte held_by;            /* whose place the hold has; 0: there is no hold, else store + 1 */

byte need[2];            /* objects that the names of each lazy store need */
byte files[2];           /* objects whose packs are files, durable */
byte coming[2];          /* the same, with names that are not */
byte missing[2];         /* the list of missing pieces */
bool lazy[2];            /* the store has that list */
bool is_there[2];

#define WHOLE(s) ((need[s] & ~(files[s] | (lazy[s] -> missing[s] & exists : 0))) == 0)
#define NAMED_EXIST(i) (!named[i] || HAS(exists, object_of[i]))
/* Where an object goes, a name comes, or a list of missing pieces goes. */
#define CHECK assert(WHOLE(0) && WHOLE(1) && NAMED_EXIST(0) && NAMED_EXIST(1))

inline killed() { goto again }

/* Uploads and head in one step: a push whose base is not the newest head begins again. */
proctype pusher() {
  byte i;
  do
  :: i = 1 - i
  :: atomic { !named[i] && named[1 - i] -> named[i] = true; object_of[i] = object_of[1 - i]; CHECK }
  :: atomic { !named[i] && !HAS(exists, 0) -> named[i] = true; object_of[i] = 0; exists = exists | BIT(0); CHECK }
  :: atomic { !named[i] && !HAS(exists, 1) -> named[i] = true; object_of[i] = 1; exists = exists | BIT(1); CHECK }
  od
}

proctype operator() {
  do
  :: atomic { named[0] -> named[0] = false }
  :: atomic { named[1] -> named[1] = false }
  od
}

proctype gc() {
  byte held, o;
again:
  atomic { held = 0; o = 0; old = 0 }
  if
  :: FAULT == 4 -> held = hold
  :: else
  fi;
  atomic { /* the boundary */
    passed[0] = true; passed[1] = true;
    old = exists;
    held = held | (named[0] -> BIT(object_of[0]) : 0) | (named[1] -> BIT(object_of[1]) : 0)
  }
  if
  :: killed()
  :: FAULT == 4 -> skip
  :: FAULT != 4 -> held = held | hold
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

/* With the pieces of the other store, if the hold is of its place and it is still lazy. */
inline put_hold(s, pieces) {
  atomic {
    if
    :: held_by == 2 - s && lazy[1 - s] -> hold = hold | pieces
    :: else -> hold = pieces
    fi;
    held_by = s + 1
  }
}
inline remove_hold(s) {
  atomic {
    if
#ifndef GAP
    :: held_by == s + 1 && lazy[1 - s] -> skip /* not in the code: the other is not known */
#endif
    :: held_by == 2 - s && lazy[1 - s] && FAULT != 3 -> skip
    :: else -> hold = 0; held_by = 0
    fi
  }
}

proctype lazy_store(byte s) {
  byte i, o, bringing;
again:
  atomic { i = 0; o = 0; bringing = 0 }
  if
  :: s == 0 && !is_there[0] -> goto pull /* the clone */
  :: is_there[s] && lazy[s] -> goto pull
  :: is_there[s] && lazy[s] -> goto packs
  :: is_there[s] && !lazy[s] && held_by == s + 1 -> goto release /* of an earlier `--packs` */
  :: atomic { is_there[s] && need[s] != 0 -> need[s] = 0 } goto again /* rm */
#ifdef COPY
  :: atomic { s == 0 && is_there[0] && !is_there[1] && bringing == 0 -> /* cp -r */
       need[1] = need[0]; files[1] = files[0]; missing[1] = missing[0]; lazy[1] = lazy[0];
       is_there[1] = true }
     goto again
#endif
  fi;

pull:
  atomic {
    passed[s] = false;
    if
    :: named[0] -> o = object_of[0]
    :: named[1] -> o = object_of[1]
    :: else -> goto again
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
  atomic { lazy[s] = true; missing[s] = missing[s] | BIT(o) }
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

release:
  remove_hold(s);
  goto again
}

init {
  atomic {
    run pusher(); run operator(); run gc(); run lazy_store(0); run lazy_store(1);
  }
}
